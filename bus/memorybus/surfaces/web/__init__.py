"""The page of operators, with the metrics and the health paths: ``memorybus serve``; extra `web`.

It shows the status, the findings and what the operations return, and computes no second truth.
Nothing here is imported before the command runs. Who may enter: everything that services return, as
data for templates. Who may use it: the command line alone.

How to add a view, one module of `pages` each:

1. A function ``show(asked: Asked) -> Mapping[str, Any]``: it reads a snapshot (`asked.look()`, or a
   service of the operations) and returns the data of its template. It runs on a thread, so it may
   block. It raises `MemoryBusError` where it cannot: people see the message, with a fitting status.
2. A template that extends ``base.html``. What is in its block ``live`` is rendered again every two
   seconds and sent to those who look; forms stand outside of it, in the block ``body``.
3. A `Page` with the path, the template, the function; with a label and a key if it is in the
   navigation. ``pages/__init__.py`` lists it in `PAGES`.
4. What changes something is an `Act` of the page: ``do(asked: Asked) -> Done``, called for a POST
   that came from our own form, of somebody who may act, with a reason. It is told to the log as
   `OperatorActed` before it is done. Its form is the macro ``act`` of ``parts.html``.
5. What else a script asks for (JSON, a fragment) is a `Part`.

Texts are escaped by the templates: never mark one as safe, never put one into a script or a style.
"""
