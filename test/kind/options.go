// Package kind deploys the operator and an MLflow to a kind cluster, with any combination of stores. It implements `make deploy-kind`. The
// steps that need a container engine are in cluster.go; all others work on any cluster, and tests run them on the test cluster.
package kind

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// The stores of runs and models, and the stores of artifacts.
const (
	SQLite   = "sqlite"
	Postgres = "postgres"
	File     = "file"
	S3       = "s3"
)

// Options are the options of a deployment.
type Options struct {
	// Namespace of all objects.
	Namespace string
	// BackendStore is SQLite or Postgres. RegistryStore is SQLite or Postgres; empty means the BackendStore.
	BackendStore, RegistryStore string
	// ArtifactStorage is File or S3.
	ArtifactStorage string
	// ServeArtifacts makes MLflow serve the artifacts in S3. MLflow always serves artifacts in files.
	ServeArtifacts bool
	// MLflowImage is the image of MLflow, Image that of the manager. Empty means the image in the manifests.
	MLflowImage, Image string
	// PostgresTLS and SeaweedFSTLS generate certificates for these servers, which MLflow verifies.
	PostgresTLS, SeaweedFSTLS bool
	// CABundleConfigMap is an existing ConfigMap with CAs in the namespace. CABundlePath is a file with CAs.
	CABundleConfigMap, CABundlePath string
}

// Defaults returns the default options.
func Defaults() Options {
	return Options{Namespace: "opendatahub", BackendStore: SQLite, ArtifactStorage: File, ServeArtifacts: true}
}

func (o Options) registryStore() string {
	if o.RegistryStore == "" {
		return o.BackendStore
	}
	return o.RegistryStore
}

func (o Options) needsDatabase() bool {
	return o.BackendStore == Postgres || o.registryStore() == Postgres
}

func (o Options) needsS3() bool { return o.ArtifactStorage == S3 }

// needsDirectArtifacts reports whether clients access the artifacts directly in S3.
func (o Options) needsDirectArtifacts() bool { return o.needsS3() && !o.ServeArtifacts }

// needsCABundle reports whether a ConfigMap with CAs has to be generated.
func (o Options) needsCABundle() bool { return o.PostgresTLS || o.SeaweedFSTLS || o.CABundlePath != "" }

// Validate returns an error that lists all invalid options and combinations of options.
func (o Options) Validate() error {
	var errs []error
	if problems := validation.IsDNS1123Label(o.Namespace); len(problems) > 0 {
		errs = append(errs, fmt.Errorf("KIND_NAMESPACE is %q: %s", o.Namespace, strings.Join(problems, "; ")))
	}
	choice := func(name, value string, allowed ...string) {
		if !slices.Contains(allowed, value) {
			errs = append(errs, fmt.Errorf("%s is %q: set it to %s", name, value, strings.Join(allowed, " or ")))
		}
	}
	choice("BACKEND_STORE", o.BackendStore, SQLite, Postgres)
	choice("REGISTRY_STORE", o.registryStore(), SQLite, Postgres)
	choice("ARTIFACT_STORAGE", o.ArtifactStorage, File, S3)
	if o.PostgresTLS && !o.needsDatabase() {
		errs = append(errs, errors.New("POSTGRES_TLS is true, but there is no PostgreSQL: set BACKEND_STORE or REGISTRY_STORE to postgres"))
	}
	if o.SeaweedFSTLS && !o.needsS3() {
		errs = append(errs, errors.New("SEAWEEDFS_TLS is true, but there is no SeaweedFS: set ARTIFACT_STORAGE to s3"))
	}
	if o.CABundleConfigMap != "" && o.needsCABundle() {
		errs = append(errs, errors.New("CA_BUNDLE_CONFIGMAP excludes CA_BUNDLE_PATH, POSTGRES_TLS and SEAWEEDFS_TLS, which generate a ConfigMap: use CA_BUNDLE_PATH"))
	}
	return errors.Join(errs...)
}

// components returns the components below config/kind for the options, in order.
func (o Options) components() []string {
	var all []string
	for _, component := range []struct {
		name    string
		enabled bool
	}{
		{"database", o.needsDatabase()},
		{"database-tls", o.PostgresTLS},
		{"backend-postgres", o.BackendStore == Postgres},
		{"registry-postgres", o.BackendStore == SQLite && o.registryStore() == Postgres},
		{"registry-sqlite", o.BackendStore == Postgres && o.registryStore() == SQLite},
		{"artifacts-s3", o.needsS3()},
		{"artifacts-s3-tls", o.SeaweedFSTLS},
		{"artifacts-direct", o.needsDirectArtifacts()},
		{"ca-bundle", o.needsCABundle() || o.CABundleConfigMap != ""},
		{"no-storage", o.BackendStore == Postgres && o.registryStore() == Postgres && o.needsS3()},
	} {
		if component.enabled {
			all = append(all, component.name)
		}
	}
	return all
}
