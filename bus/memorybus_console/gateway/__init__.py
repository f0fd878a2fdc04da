"""The bus for agents in any language: an HTTP API, and MCP over HTTP.

Every operation is one typed method of `Gateway`; its route, its checks and its place in the OpenAPI
document follow from its declaration. Keys say whose memory a caller may use, and for what.
"""
