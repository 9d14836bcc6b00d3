# detaudit and the packages that a training imports; docs/how-to/container.md explains it.
#
#   docker build --build-arg PACKAGES="torch scikit-learn" --tag=detaudit .
#   docker run --rm --user "$(id -u):$(id -g)" --volume "$PWD:/project" detaudit run train.py

FROM python:3.11-slim AS build
COPY . /source
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /dist /source

FROM python:3.11-slim
ARG PACKAGES=""
# Archives of evidence and comparisons of commits ask git.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends git \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /dist /dist
RUN pip install --no-cache-dir /dist/*.whl ${PACKAGES}
# A user of --user has no home and no name, and torch asks for both.
ENV HOME=/tmp USER=detaudit
USER nobody
WORKDIR /project
ENTRYPOINT ["detaudit"]
