"""What compilers do not find by themselves: a square of numbers transposed in registers."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

WORD, BYTES, FOUR = ir.IntType(64), ir.IntType(8).as_pointer(), ir.VectorType(ir.DoubleType(), 4)


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
