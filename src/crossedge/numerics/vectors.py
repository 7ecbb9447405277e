"""What compilers do not find by themselves: work on small blocks that stays in registers."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

WORD, BYTES, FOUR = ir.IntType(64), ir.IntType(8).as_pointer(), ir.VectorType(ir.DoubleType(), 4)

ZERO, SAME = ir.Constant(ir.IntType(32), 0), ir.Constant(ir.VectorType(ir.IntType(32), 4), [0] * 4)
FUSED = ("contract",)  # a * b + c may be rounded once


def _turn(_: Any, source: Any, __: Any, ___: Any, target: Any, ____: Any, _____: Any) -> Any:
    """turn(source, i, j, target, row, column), in a compiled loop.

    It sets target[row + b, column + a] = source[i + a, j + b] for a, b < 4. Rows are contiguous
    doubles, and may lie far apart.
    """

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kinds = signature.args
        source, target = (
            context.make_array(kinds[at])(context, builder, values[at]) for at in (0, 3)
        )

        def four(array: Any, i: Any, j: Any, more: int) -> Any:
            """Where the numbers i + more, j ... j + 3 stand."""
            stride = builder.extract_value(array.strides, 0)
            rows = builder.mul(builder.add(i, ir.Constant(WORD, more)), stride)
            bytes_on = builder.add(rows, builder.mul(j, ir.Constant(WORD, 8)))
            place = builder.gep(builder.bitcast(array.data, BYTES), [bytes_on])
            return builder.bitcast(place, FOUR.as_pointer())

        def mix(one: Any, other: Any, *places: int) -> Any:
            mask = ir.Constant(ir.VectorType(ir.IntType(32), 4), list(places))
            return builder.shuffle_vector(one, other, mask)

        r0, r1, r2, r3 = (
            builder.load(four(source, values[1], values[2], a), align=8) for a in range(4)
        )
        even, odd = mix(r0, r1, 0, 4, 2, 6), mix(r0, r1, 1, 5, 3, 7)
        even_below, odd_below = mix(r2, r3, 0, 4, 2, 6), mix(r2, r3, 1, 5, 3, 7)
        columns = (
            mix(even, even_below, 0, 1, 4, 5),
            mix(odd, odd_below, 0, 1, 4, 5),
            mix(even, even_below, 2, 3, 6, 7),
            mix(odd, odd_below, 2, 3, 6, 7),
        )
        for b, column in enumerate(columns):
            builder.store(column, four(target, values[4], values[5], b), align=8)
        return context.get_dummy_value()

    index = types.intp
    return types.void(source, index, index, target, index, index), code


turn: Any = intrinsic(_turn)


def _add_rows_of(vectors: int) -> Any:
    """add_rows(one, other, j, factor, other_factor, rows, first, last), in a compiled loop.

    It adds sum_k factor[k] rows[k, j + c] to one[j + c], for k from `first` to last - 1 and c < 4
    `vectors`, and to `other` likewise. Sums stay in registers, which compilers do not manage here,
    since they cannot know that nothing overlaps.
    """

    def add_rows(
        _: Any, one: Any, other: Any, __: Any, factor: Any, by: Any, rows: Any, ___: Any, ____: Any
    ) -> Any:
        def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            at = (0, 1, 3, 4, 5)
            one, other, factor, other_factor, rows = (
                context.make_array(signature.args[k])(context, builder, values[k]) for k in at
            )
            j, first, last = values[2], values[6], values[7]

            def fours(line: Any) -> list[Any]:
                """Where the numbers of a row from j on stand."""
                start = builder.gep(line, [j])
                every = (builder.gep(start, [ir.Constant(WORD, 4 * v)]) for v in range(vectors))
                return [builder.bitcast(place, FOUR.as_pointer()) for place in every]

            def spread(line: Any, k: Any) -> Any:
                """One number in all places of a vector."""
                number = builder.load(builder.gep(line, [k]))
                single = builder.insert_element(ir.Constant(FOUR, ir.Undefined), number, ZERO)
                return builder.shuffle_vector(single, ir.Constant(FOUR, ir.Undefined), SAME)

            targets = fours(one.data) + fours(other.data)
            before = [builder.load(target, align=8) for target in targets]
            entry = builder.block
            loop, done = (builder.append_basic_block(name) for name in ("rows", "rows.done"))
            builder.cbranch(builder.icmp_signed("<", first, last), loop, done)

            builder.position_at_end(loop)
            k = builder.phi(WORD)
            sums = [builder.phi(FOUR) for _ in targets]
            row = builder.bitcast(
                builder.gep(
                    builder.bitcast(rows.data, BYTES),
                    [builder.mul(k, builder.extract_value(rows.strides, 0))],
                ),
                rows.data.type,
            )
            f, g = spread(factor.data, k), spread(other_factor.data, k)
            loaded = [builder.load(place, align=8) for place in fours(row)]
            terms = [(f, r) for r in loaded] + [(g, r) for r in loaded]
            more = [
                builder.fadd(old, builder.fmul(by, r, flags=FUSED), flags=FUSED)
                for old, (by, r) in zip(sums, terms, strict=True)
            ]
            following = builder.add(k, ir.Constant(WORD, 1))
            _join([k, *sums], [first, *before], entry, [following, *more], loop)
            builder.cbranch(builder.icmp_signed("<", following, last), loop, done)

            builder.position_at_end(done)
            totals = [builder.phi(FOUR) for _ in targets]
            _join(totals, before, entry, more, loop)
            for total, target in zip(totals, targets, strict=True):
                builder.store(total, target, align=8)
            return context.get_dummy_value()

        index = types.intp
        return types.void(one, other, index, factor, by, rows, index, index), code

    return intrinsic(add_rows)


def _join(phis: list[Any], some: list[Any], block: Any, others: list[Any], other: Any) -> None:
    for phi, one, two in zip(phis, some, others, strict=True):
        phi.add_incoming(one, block)
        phi.add_incoming(two, other)


add_rows_8, add_rows_16 = _add_rows_of(2), _add_rows_of(4)
