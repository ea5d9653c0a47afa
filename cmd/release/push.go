package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// push sends the images and the chart of a release to the registry that the manifests name. It uses the credentials of docker and podman.
func push(ctx context.Context, dist, registry string, out io.Writer) error {
	entries, err := os.ReadDir(filepath.Join(dist, "images"))
	if err != nil {
		return fmt.Errorf("looking for images: %w: run make release first", err)
	}
	for _, entry := range entries {
		root, err := layout.ImageIndexFromPath(filepath.Join(dist, "images", entry.Name()))
		if err != nil {
			return fmt.Errorf("reading image %s: %w", entry.Name(), err)
		}
		list, err := root.IndexManifest()
		if err != nil {
			return fmt.Errorf("reading image %s: %w", entry.Name(), err)
		}
		for _, d := range list.Manifests {
			target := d.Annotations[nameAnnotation]
			if registry != "" && !strings.HasPrefix(target, registry+"/") {
				return fmt.Errorf("the manifests of this release name %s, and REGISTRY is %s: run make release REGISTRY=%s, so that they name the images that are pushed", target, registry, registry)
			}
			if err := send(ctx, root, d, target); err != nil {
				return fmt.Errorf("pushing %s: %w", target, err)
			}
			fmt.Fprintf(out, "published %s@%s\n", target, d.Digest)
		}
	}
	return nil
}

// send pushes an image. It returns an error if the tag exists with another digest, because a published version is never replaced.
func send(ctx context.Context, root v1.ImageIndex, d v1.Descriptor, target string) error {
	reference, err := name.NewTag(target, name.StrictValidation)
	if err != nil {
		return err
	}
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	switch existing, err := remote.Head(reference, options...); {
	case err == nil && existing.Digest == d.Digest:
		return nil
	case err == nil:
		return fmt.Errorf("the tag is already published with digest %s: choose another version", existing.Digest)
	case !isMissing(err):
		return err
	}
	var content remote.Taggable
	if d.MediaType.IsIndex() {
		content, err = root.ImageIndex(d.Digest)
	} else {
		content, err = root.Image(d.Digest)
	}
	if err != nil {
		return err
	}
	return remote.Push(reference, content, options...)
}

// isMissing reports whether the image may be missing. Some registries deny access to a repository that does not exist.
func isMissing(err error) bool {
	var response *transport.Error
	return errors.As(err, &response) && (response.StatusCode == http.StatusNotFound || response.StatusCode == http.StatusForbidden || response.StatusCode == http.StatusUnauthorized)
}
