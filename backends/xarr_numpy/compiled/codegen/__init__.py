"""From loop programs to machine code: LLVM IR, and its way through the LLVM JIT."""
