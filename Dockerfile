# The image of the manager, for every platform of the base image: docker buildx build --platform linux/amd64,linux/arm64,... .
# The compiler runs on the platform of the builder and cross-compiles for the target.
ARG GO_IMAGE=docker.io/library/golang:1.26
ARG BASE_IMAGE=gcr.io/distroless/static:nonroot

FROM --platform=$BUILDPLATFORM ${GO_IMAGE} AS build
ARG TARGETOS=linux
ARG TARGETARCH
ARG VERSION=0.1.0
# off, or v1.0.0 for a program with the certified Go Cryptographic Module in FIPS 140-3 mode, see docs/olm.md.
ARG GOFIPS140=off
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY Makefile ./
COPY apis/ apis/
COPY cmd/ cmd/
COPY config/ config/
COPY controllers/ controllers/
COPY pkg/ pkg/
COPY webhooks/ webhooks/
RUN CGO_ENABLED=0 GOOS=${TARGETOS} GOARCH=${TARGETARCH} GOFIPS140=${GOFIPS140} \
    make manager BINARY=/manager VERSION=${VERSION}

FROM ${BASE_IMAGE}
ARG VERSION=0.1.0
LABEL org.opencontainers.image.title=odh-platform-operator
LABEL org.opencontainers.image.version=${VERSION}
LABEL org.opencontainers.image.licenses=Apache-2.0
LABEL org.opencontainers.image.source=https://github.com/odh-platform/odh-platform-operator
COPY --from=build /manager /manager
COPY LICENSE /licenses/LICENSE
# A number, because a kubelet cannot check whether a user name is that of root.
USER 65532:65532
ENTRYPOINT ["/manager"]
