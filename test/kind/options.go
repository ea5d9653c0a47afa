// Package kind deploys the operator and an MLflow into a cluster of kind, with every combination of stores; it implements
// `make deploy-kind`. The few steps that need a container engine are in cluster.go; everything else works on any
// cluster and is tested so.
package kind

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Where MLflow keeps runs and models, and where it keeps artifacts.
const (
	SQLite   = "sqlite"
	Postgres = "postgres"
	File     = "file"
	S3       = "s3"
)

// Options of a deployment.
type Options struct {
	// Namespace of everything.
	Namespace string
	// BackendStore is SQLite or Postgres; RegistryStore likewise, or empty for the same store.
	BackendStore, RegistryStore string
	// ArtifactStorage is File or S3.
	ArtifactStorage string
	// ServeArtifacts lets clients reach artifacts through MLflow. Files are reachable only through MLflow.
	ServeArtifacts bool
	// MLflowImage and Image, that of the manager, default to those of the manifests.
	MLflowImage, Image string
	// PostgresTLS and SeaweedFSTLS generate certificates for these servers, which MLflow verifies.
	PostgresTLS, SeaweedFSTLS bool
	// CABundleConfigMap names an existing ConfigMap with CAs in the namespace. CABundlePath is a file with CAs.
	CABundleConfigMap, CABundlePath string
}

// Defaults returns the default options.
func Defaults() Options {
	return Options{Namespace: "opendatahub", BackendStore: SQLite, ArtifactStorage: File, ServeArtifacts: true}
}

func (o Options) registry() string {
	if o.RegistryStore == "" {
		return o.BackendStore
	}
	return o.RegistryStore
}

func (o Options) database() bool { return o.BackendStore == Postgres || o.registry() == Postgres }

func (o Options) s3() bool { return o.ArtifactStorage == S3 }

// direct reports whether clients reach the artifacts without MLflow.
func (o Options) direct() bool { return o.s3() && !o.ServeArtifacts }

// bundle reports whether a ConfigMap with CAs is needed.
func (o Options) bundle() bool { return o.PostgresTLS || o.SeaweedFSTLS || o.CABundlePath != "" }

// Validate returns an error for every invalid option, with its value and the valid ones.
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
	choice("REGISTRY_STORE", o.registry(), SQLite, Postgres)
	choice("ARTIFACT_STORAGE", o.ArtifactStorage, File, S3)
	if o.PostgresTLS && !o.database() {
		errs = append(errs, errors.New("POSTGRES_TLS is true, but there is no PostgreSQL: set BACKEND_STORE or REGISTRY_STORE to postgres"))
	}
	if o.SeaweedFSTLS && !o.s3() {
		errs = append(errs, errors.New("SEAWEEDFS_TLS is true, but there is no SeaweedFS: set ARTIFACT_STORAGE to s3"))
	}
	if o.CABundleConfigMap != "" && o.bundle() {
		errs = append(errs, errors.New("CA_BUNDLE_CONFIGMAP excludes CA_BUNDLE_PATH, POSTGRES_TLS and SEAWEEDFS_TLS, for which a ConfigMap is made: use CA_BUNDLE_PATH"))
	}
	return errors.Join(errs...)
}

// components lists the folders below config/kind that add the requested options to the base, in the order in which they apply.
func (o Options) components() []string {
	var all []string
	for _, part := range []struct {
		name   string
		wanted bool
	}{
		{"database", o.database()},
		{"database-tls", o.PostgresTLS},
		{"backend-postgres", o.BackendStore == Postgres},
		{"registry-postgres", o.BackendStore == SQLite && o.registry() == Postgres},
		{"registry-sqlite", o.BackendStore == Postgres && o.registry() == SQLite},
		{"artifacts-s3", o.s3()},
		{"artifacts-s3-tls", o.SeaweedFSTLS},
		{"artifacts-direct", o.direct()},
		{"ca-bundle", o.bundle() || o.CABundleConfigMap != ""},
		{"no-storage", o.BackendStore == Postgres && o.registry() == Postgres && o.s3()},
	} {
		if part.wanted {
			all = append(all, part.name)
		}
	}
	return all
}
