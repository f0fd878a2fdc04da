# A memorybus worker (or any other command: `docker run memorybus:0.1.0 status`).
# It has every kind of provider, embedders, traces, metrics, the page, and what the archive needs,
# without which Redis would never be trimmed. A smaller image has fewer:
# `docker build --build-arg EXTRAS=standard,archive,postgres,metrics,web .`
# Settings come from MEMORYBUS_* at run time; nothing secret is built in.

ARG PYTHON=python:3.12-slim
FROM $PYTHON AS build
ARG EXTRAS=all,derive,fastembed,local-embeddings,hindsight,honcho,mem0,mem0-server,mentisdb,webhook
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY bus bus
COPY workers workers
COPY providers providers
RUN python -m venv /opt/memorybus \
 && /opt/memorybus/bin/pip install --no-cache-dir ".[$EXTRAS]"

FROM $PYTHON
RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin memorybus \
 && install -d -o memorybus -g memorybus -m 0700 /data
COPY --from=build /opt/memorybus /opt/memorybus
ENV PATH=/opt/memorybus/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    MEMORYBUS_DATA_DIR=/data
WORKDIR /data
VOLUME /data
# By number, so that Kubernetes sees that it is not root.
USER 10001
# Healthy is: Redis answers, and a worker of this container has told it so lately.
HEALTHCHECK --interval=30s --timeout=20s --start-period=60s --retries=3 \
  CMD memorybus status --json | python -c "import json, socket, sys; sys.exit(socket.gethostname() not in [one['host'] for one in json.load(sys.stdin)['workers']])"
ENTRYPOINT ["memorybus"]
CMD ["worker"]
