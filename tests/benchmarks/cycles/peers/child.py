"""Compiles kernels with Triton, in a process whose only other modules are Triton's.

    python -I -S child.py SITE < requests.json > results.json

Each request: ``file``, ``function``, ``signature`` (names to types), ``constants``, ``aligned``
(names that are multiples of 16), ``small`` (pointers to less than 2 GiB), ``options``,
``processor``, ``wave``. Its result is ``listing``, ``lds_bytes``, or ``error``.
"""

import importlib.util
import json
import os
import sys


def main() -> None:
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what Triton prints is no result
    sys.path.insert(0, sys.argv[1])
    out.write(json.dumps([_answer(request) for request in json.load(sys.stdin)]))
    out.flush()


def _answer(request):
    try:
        return _compiled(request)
    except Exception as error:  # noqa: BLE001 -- whatever it is, this kernel is not to be had
        said = " ".join(str(error).split())
        return {"error": f"{type(error).__name__}: {said}"[:500]}


def _compiled(request):
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    spec = importlib.util.spec_from_file_location("kernels", request["file"])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    signature = request["signature"]
    constants = request["constants"]
    function = getattr(module, request["function"])
    names = list(function.arg_names)  # a request's constants may come in another order
    attributes = {}
    for name in signature:
        found = [["tt.divisibility", 16]] if name in request["aligned"] else []
        found += [["tt.pointer_range", 32]] if name in request["small"] else []
        if found:
            attributes[(names.index(name),)] = found
    source = ASTSource(
        fn=function,
        signature={**signature, **dict.fromkeys(constants, "constexpr")},
        constexprs={(names.index(name),): value for name, value in constants.items()},
        attrs=attributes,
    )
    target = GPUTarget("hip", request["processor"], request["wave"])
    made = triton.compile(source, target=target, options=request["options"])
    return {"listing": made.asm["amdgcn"], "lds_bytes": made.metadata.shared}


if __name__ == "__main__":
    main()
