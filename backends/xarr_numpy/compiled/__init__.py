"""Loops compiled for the processor by LLVM, which the extra `xarr[jit]` brings (llvmlite)."""
