# One image for both roles: `docker run fetcher --role=manager`, `--role=worker`; docs/deployment.md.
# A release pins the base by its digest: --build-arg PYTHON_DIGEST=@sha256:…
ARG PYTHON_DIGEST=""

FROM python:3.13-slim${PYTHON_DIGEST} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /build
COPY requirements/build.txt requirements/runtime.txt requirements/
# an index of one's own: --secret id=pip,src=pip.conf; it stays out of every layer
RUN --mount=type=secret,id=pip,target=/etc/pip.conf \
    python -m venv /app/venv \
    && /app/venv/bin/pip install --require-hashes -r requirements/runtime.txt
COPY LICENSE README.md pyproject.toml ./
COPY engine engine
COPY fetcher fetcher
RUN /app/venv/bin/pip install --no-index --no-deps --no-build-isolation ./engine . \
    && /app/venv/bin/fetcher --version

FROM python:3.13-slim${PYTHON_DIGEST}
# /data: what is embedded; /spool: what waits for its turn in a result. Nothing else is written
RUN groupadd --system --gid 1001 fetcher \
    && useradd --system --uid 1001 --gid 1001 --home-dir /app --no-create-home \
       --shell /usr/sbin/nologin fetcher \
    && install -d -m 0755 /app \
    && install -d -m 0700 -o 1001 -g 1001 /data /spool
COPY --from=build /app/venv /app/venv
ENV PATH=/app/venv/bin:$PATH HOME=/app PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 \
    FETCHER_DATA_DIR=/data
WORKDIR /app
USER 1001:1001
EXPOSE 4006 4007
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-m", "fetcher.healthcheck"]
ENTRYPOINT ["fetcher"]
CMD ["--role=all"]
