"""Arrays as the chunks of Dask, Cubed and xarray.

`xarr.arrays.import_hooks` imports each module here after the library that it is for, and never before;
docs/beyond_one_machine.md says what works.
"""
