"""Signing in and out with the token."""

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from memorybus.surfaces.web import answers, forms
from memorybus.surfaces.web.access import LASTS, TooManyTries, is_own_origin
from memorybus.surfaces.web.site import Site


def routes(site: Site) -> list[Route]:
    """Return the form, and what it is sent to."""

    async def form(request: Request) -> Response:
        return _form(site, request, request.query_params.get("next", "/"))

    async def sign_in(request: Request) -> Response:
        fields = await forms.read(request)
        if fields is None or not is_own_origin(request):
            return Response("this form is not of this page\n", 403)
        return await run_in_threadpool(_sign_in, site, request, fields)

    async def sign_out(request: Request) -> Response:
        fields = await forms.read(request)
        who = site.access.person(request)
        proof = (fields or {}).get("proof", "")
        if who and site.access.is_own_form(request, who, proof):
            site.access.sign_out(who)
        answer = RedirectResponse("/", 303)
        answer.delete_cookie(site.access.cookie(request), secure=site.access.is_secure(request))
        return answer

    return [
        Route("/signin", form),
        Route("/signin", sign_in, methods=["POST"]),
        Route("/signout", sign_out, methods=["POST"]),
    ]


def _sign_in(site: Site, request: Request, fields: dict[str, str]) -> Response:
    following = fields.get("next", "/")
    name = fields.get("name", "").strip()
    if not name:
        return _form(site, request, following, "say who you are: what you do is kept with it", 400)
    address = request.client.host if request.client else ""
    try:
        session = site.access.sign_in(fields.get("token", ""), name, address)
    except TooManyTries:
        return _form(site, request, following, "too many wrong tokens: wait a minute", 429)
    if session is None:
        return _form(site, request, following, "this is not the token", 403)
    answer = RedirectResponse(own_path(following), 303)
    answer.set_cookie(
        site.access.cookie(request),
        session,
        max_age=round(LASTS),
        httponly=True,
        samesite="strict",
        secure=site.access.is_secure(request),
    )
    return answer


def _form(
    site: Site, request: Request, following: str, said: str = "", status: int = 200
) -> Response:
    context = answers.base(site, request, None, ()) | {"following": following, "said": said}
    context["flash"] = ""
    return HTMLResponse(site.templates.get_template("signin.html").render(context), status)


def own_path(text: str) -> str:
    """Return a path of this page; the overview for what might lead elsewhere; pure."""
    own = text.startswith("/") and not text.startswith("//") and "\\" not in text
    return text if own and text.isprintable() else "/"
