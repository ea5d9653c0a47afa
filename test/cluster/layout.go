package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const (
	modulePath = "github.com/odh-platform/odh-platform-operator"
	cacheName  = "odh-platform-operator"
)

var nameFormat = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$`)

// RepositoryRoot returns the folder of the operator's go.mod, which is the working directory or above it. The modules of the binaries can
// only be built in a checkout.
func RepositoryRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the working directory: %w", err)
	}
	return rootAbove(start)
}

func rootAbove(start string) (string, error) {
	for dir := start; ; dir = filepath.Dir(dir) {
		content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && slices.Contains(strings.Split(string(content), "\n"), "module "+modulePath) {
			return dir, nil
		}
		if filepath.Dir(dir) == dir {
			return "", fmt.Errorf("finding the checkout: no go.mod of %s in %s or above it", modulePath, start)
		}
	}
}

// CacheDir returns the folder of this project in the user's cache directory, and creates it if it does not exist.
func CacheDir() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the cache directory: %w", err)
	}
	dir := filepath.Join(base, cacheName)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("creating the cache directory: %w", err)
	}
	return dir, nil
}

func instancesDir() (string, error) {
	cache, err := CacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "instances"), nil
}

func instanceDir(name string) (string, error) {
	if !nameFormat.MatchString(name) {
		return "", fmt.Errorf("instance name %q: use 1 to 40 lower-case letters, digits and inner dashes", name)
	}
	dir, err := instancesDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, name), nil
}

// writeFile replaces a file atomically.
func writeFile(path string, content []byte) error {
	temporary, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("creating %s: %w", path, err)
	}
	_, writeErr := temporary.Write(content)
	if err := errors.Join(writeErr, temporary.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", path, errors.Join(err, os.Remove(temporary.Name())))
	}
	if err := os.Rename(temporary.Name(), path); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}
