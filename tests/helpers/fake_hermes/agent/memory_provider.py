"""The base class of Hermes's memory plugins, its hooks as in 0.19."""


class MemoryProvider:
    """Hooks that do nothing."""

    def is_available(self):
        return True

    def initialize(self, session_id, **kwargs):
        """Do nothing."""

    def system_prompt_block(self):
        return ""

    def prefetch(self, query, *, session_id=""):
        return ""

    def queue_prefetch(self, query, *, session_id=""):
        """Do nothing."""

    def sync_turn(self, user_content, assistant_content, *, session_id="", messages=None):
        """Do nothing."""

    def get_tool_schemas(self):
        return []

    def on_turn_start(self, turn_number, message, **kwargs):
        """Do nothing."""

    def on_session_end(self, messages):
        """Do nothing."""

    def on_session_switch(self, new_session_id, *, parent_session_id="", reset=False, **kwargs):
        """Do nothing."""

    def on_pre_compress(self, messages):
        return ""

    def on_delegation(self, task, result, *, child_session_id="", **kwargs):
        """Do nothing."""

    def on_memory_write(self, action, target, content, metadata=None):
        """Do nothing."""

    def shutdown(self):
        """Do nothing."""
