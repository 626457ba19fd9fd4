"""The live page: ``prudent serve``.

There are three kinds of processes.  The browser shows (``static/``).  The server guards (``server``), keeps answers
and hands out work (``app``).  Workers compute (``worker``); only they hold models.  A request carries all of its
state, and the answer is a function of it; if the page cancels a request, its solve is stopped.
"""
