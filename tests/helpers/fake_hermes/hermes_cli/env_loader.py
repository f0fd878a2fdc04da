"""Reads nothing: the fake has no ``.env``."""


def load_hermes_dotenv(*, hermes_home=None, project_env=None):
    """Return no files."""
    return []
