"""Signs people in and out with the token."""

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from memorybus_console.web import answers
from memorybus_console.web.access import SESSION_SECONDS, TooManyTries, is_own_origin
from memorybus_console.web.page import Site, read_form


def routes(site: Site) -> list[Route]:
    """Return the routes of the sign-in form, and of signing in and out."""

    async def form(request: Request) -> Response:
        return _sign_in_page(site, request, request.query_params.get("next", "/"))

    async def sign_in(request: Request) -> Response:
        fields = await read_form(request)
        if fields is None or not is_own_origin(request):
            return Response("this form is not from this page\n", 403)
        return await run_in_threadpool(_sign_in, site, request, fields)

    async def sign_out(request: Request) -> Response:
        fields = await read_form(request)
        who = site.access.person(request)
        proof = (fields or {}).get("proof", "")
        if who and site.access.is_own_form(request, who, proof):
            site.access.sign_out(who)
        answer = RedirectResponse("/", 303)
        answer.delete_cookie(
            site.access.cookie_name(request), secure=site.access.is_secure(request)
        )
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
        problem = "give your name: it is recorded with what you do"
        return _sign_in_page(site, request, following, problem, 400)
    address = request.client.host if request.client else ""
    try:
        session = site.access.sign_in(fields.get("token", ""), name, address)
    except TooManyTries:
        return _sign_in_page(site, request, following, "too many wrong tokens: wait a minute", 429)
    if session is None:
        return _sign_in_page(site, request, following, "this is not the token", 403)
    answer = RedirectResponse(own_path(following), 303)
    answer.set_cookie(
        site.access.cookie_name(request),
        session,
        max_age=round(SESSION_SECONDS),
        httponly=True,
        samesite="strict",
        secure=site.access.is_secure(request),
    )
    return answer


def _sign_in_page(
    site: Site, request: Request, following: str, problem: str = "", status: int = 200
) -> Response:
    context = answers.base_context(site, request, None, ()) | {
        "following": following,
        "problem": problem,
    }
    context["flash"] = ""
    return HTMLResponse(site.templates.get_template("signin.html").render(context), status)


def own_path(text: str) -> str:
    """Return a path if it stays on this site, else that of the overview; pure."""
    own = text.startswith("/") and not text.startswith("//") and "\\" not in text
    return text if own and text.isprintable() else "/"
