"""Run a compiled loop on several threads of OpenMP, without the interpreter in between.

`in_threads` waits for the interpreter lock before and after each block, which for a matrix of a few
hundred rows takes as long as the loops. Here the compiled loop itself starts the threads, as a
compiler does for OpenMP. The arguments of the work are stored in one struct, and a small function,
generated for their types, reads them in every thread.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from crossedge.runtime.compiled import foreign_symbol
from crossedge.runtime.threads import start_of_team

WORD, HALF, BYTES = ir.IntType(64), ir.IntType(32), ir.IntType(8).as_pointer()  # types of LLVM
FORK = foreign_symbol("crossedge_fork", start_of_team())  # the symbol of GOMP_parallel


def _in_team(typing: Any, _: Any, work: Any, __: Any, ___: Any, given: Any) -> Any:
    """Generate the code of in_team(threads, work, n, size, given) in a compiled loop.

    It calls work(first, last, *given) for the parts of range(n), `size` each. The last part comes
    first, since it is the longest if rows end at the diagonal. With one thread it is a plain loop.
    A compiled loop can fail only for lack of memory, so a failure raises MemoryError.
    """
    arguments = (types.intp, types.intp, *given.types)
    work.get_call_type(typing, arguments, {})  # compiles the work for these types

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        found = signature.args[1].dispatcher.overloads[arguments]
        context.active_code_library.add_linking_library(found.library)
        shared = ir.LiteralStructType([WORD] * 4 + [context.get_value_type(given)])
        task = _task(context, builder.module, shared, found.fndesc, f"{builder.function.name}.task")
        threads, _, n, size, packed = values
        with builder.goto_entry_block():
            place = builder.alloca(shared)
        parts = builder.sdiv(builder.add(n, builder.sub(size, ir.Constant(WORD, 1))), size)
        for number, value in enumerate((parts, n, size, ir.Constant(WORD, 0), packed)):
            builder.store(value, _field(builder, place, number))
        data = builder.bitcast(place, BYTES)
        several = builder.icmp_signed(">", threads, ir.Constant(WORD, 1))
        with builder.if_else(several) as (team, alone):
            with team:
                kind = ir.FunctionType(ir.VoidType(), [task.type, BYTES, HALF, HALF])
                known = builder.module.globals
                fork = known.get(FORK) or ir.Function(builder.module, kind, FORK)
                flags = ir.Constant(HALF, 0)
                builder.call(fork, [task, data, builder.trunc(threads, HALF), flags])
            with alone:
                builder.call(task, [data])
        failed = builder.load(_field(builder, place, 3))
        with builder.if_then(builder.icmp_signed("!=", failed, ir.Constant(WORD, 0)), likely=False):
            context.call_conv.return_user_exc(builder, MemoryError, ("no room for a part",))
        return context.get_dummy_value()

    return types.void(types.intp, work, types.intp, types.intp, given), code


in_team: Any = intrinsic(_in_team)


def _task(context: Any, module: Any, shared: Any, work: Any, name: str) -> Any:
    """Generate the function of each thread, which takes the next part until there is none.

    while (part = --parts) >= 0: work(part * size, min(part * size + size, n), *given)
    """
    kind = ir.FunctionType(ir.VoidType(), [BYTES])
    task = ir.Function(module, kind, module.get_unique_name(name))
    task.linkage = "internal"
    entry, next_part, body, done = (
        task.append_basic_block(block) for block in ("entry", "next_part", "body", "done")
    )
    builder = ir.IRBuilder(entry)
    place = builder.bitcast(task.args[0], shared.as_pointer())
    parts = _field(builder, place, 0)
    n, size, packed = (builder.load(_field(builder, place, number)) for number in (1, 2, 4))
    builder.branch(next_part)

    builder.position_at_end(next_part)
    one = ir.Constant(WORD, 1)
    part = builder.sub(builder.atomic_rmw("sub", parts, one, "monotonic"), one)
    builder.cbranch(builder.icmp_signed(">=", part, ir.Constant(WORD, 0)), body, done)

    builder.position_at_end(body)
    first = builder.mul(part, size)
    last = builder.add(first, size)
    last = builder.select(builder.icmp_signed("<", last, n), last, n)
    given = [builder.extract_value(packed, number) for number in range(len(work.argtypes) - 2)]
    function = context.declare_function(module, work)
    status, _ = context.call_conv.call_function(
        builder, function, work.restype, work.argtypes, [first, last, *given]
    )
    with builder.if_then(status.is_error, likely=False):
        builder.store(one, _field(builder, place, 3))
    builder.branch(next_part)

    builder.position_at_end(done)
    builder.ret_void()
    return task


def _field(builder: Any, place: Any, number: int) -> Any:
    """Return a pointer to a field of the shared struct: parts, n, size, failed, given."""
    return builder.gep(place, [ir.Constant(HALF, 0), ir.Constant(HALF, number)])
