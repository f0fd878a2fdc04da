"""The page of operators, with the metrics and the health paths: ``memorybus serve``; extra `web`.

It shows the status, the findings and what the operations return; it computes nothing of its own.
Nothing here is imported before the command runs, and only the command line imports it. The
templates get as data whatever the services return.

How to add a view, one module of `pages` each:

1. A function ``show(request: PageRequest) -> Mapping[str, Any]``: it reads a snapshot
   (`request.bus_state()`, or a service of the operations) and returns the data of its template. It
   runs on a thread, so it may block. If it raises `MemoryBusError`, people see the message, with a
   fitting status code.
2. A template that extends ``base.html``. Its block ``live`` is rendered again every two seconds and
   sent to open pages; forms stand outside of it, in the block ``body``.
3. A `Page` with the path, the template, the function; with a label and a key if it is in the
   navigation. ``pages/__init__.py`` lists it in `PAGES`.
4. Whatever changes something is an `Act` of the page: one of the `actions`, and what a request
   gives of its fields. The action is performed for a POST with a reason, from our own form and by a
   person who may act. Its form is the macro ``act`` of ``parts.html``.
5. Anything else that a script asks for (JSON, a fragment) is a `Part`.

Texts are escaped by the templates: never mark one as safe, never put one into a script or a style.
"""
