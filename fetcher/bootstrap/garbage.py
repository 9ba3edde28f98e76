"""Python's garbage collection in a process that must answer in time.

A full collection looks at every object that could be part of a cycle, with the interpreter's lock
held, so that the loop and all threads stand still. Most of them are there from the start and stay:
modules, models, the descriptions of a cloud's services. With them it takes 60 to 100 ms, without
them a few.
"""

import gc


def spare_what_is_there() -> None:
    """Leave all objects that exist now out of every later collection; blocking, some 100 ms.

    What among them becomes garbage in a cycle is never freed: call it once, when all is set up.
    """
    gc.collect()
    gc.freeze()
