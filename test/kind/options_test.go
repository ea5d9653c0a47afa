package kind

import (
	"slices"
	"strings"
	"testing"
)

// withOptions returns the defaults with a change.
func withOptions(change func(*Options)) Options {
	o := Defaults()
	change(&o)
	return o
}

func TestComponents(t *testing.T) {
	for name, c := range map[string]struct {
		options Options
		want    []string
	}{
		"defaults":           {Defaults(), nil},
		"files and Postgres": {withOptions(func(o *Options) { o.BackendStore = Postgres }), []string{"database", "backend-postgres"}},
		"S3 and SQLite":      {withOptions(func(o *Options) { o.ArtifactStorage = S3 }), []string{"artifacts-s3"}},
		"S3 and Postgres": {
			withOptions(func(o *Options) { o.BackendStore, o.ArtifactStorage = Postgres, S3 }),
			[]string{"database", "backend-postgres", "artifacts-s3", "no-storage"},
		},
		"models in PostgreSQL": {
			withOptions(func(o *Options) { o.RegistryStore = Postgres }), []string{"database", "registry-postgres"},
		},
		"models in SQLite, runs in PostgreSQL": {
			withOptions(func(o *Options) { o.BackendStore, o.RegistryStore, o.ArtifactStorage = Postgres, SQLite, S3 }),
			[]string{"database", "backend-postgres", "registry-sqlite", "artifacts-s3"},
		},
		"both stores in SQLite": {withOptions(func(o *Options) { o.RegistryStore = SQLite }), nil},
		"direct access to S3":   {withOptions(func(o *Options) { o.ArtifactStorage, o.ServeArtifacts = S3, false }), []string{"artifacts-s3", "artifacts-direct"}},
		"files without serving": {withOptions(func(o *Options) { o.ServeArtifacts = false }), nil},
		"TLS for all servers": {
			withOptions(func(o *Options) {
				o.BackendStore, o.ArtifactStorage, o.PostgresTLS, o.SeaweedFSTLS = Postgres, S3, true, true
			}),
			[]string{"database", "database-tls", "backend-postgres", "artifacts-s3", "artifacts-s3-tls", "ca-bundle", "no-storage"},
		},
		"file with CAs":      {withOptions(func(o *Options) { o.CABundlePath = "ca.pem" }), []string{"ca-bundle"}},
		"ConfigMap with CAs": {withOptions(func(o *Options) { o.CABundleConfigMap = "own" }), []string{"ca-bundle"}},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.options.Validate(); err != nil {
				t.Fatal(err)
			}
			if got := c.options.components(); !slices.Equal(got, c.want) {
				t.Errorf("got components %v, want %v", got, c.want)
			}
		})
	}
}

func TestValidateReportsInvalidOptions(t *testing.T) {
	for name, c := range map[string]struct {
		options Options
		want    []string
	}{
		"unknown values": {
			Options{Namespace: "Up", BackendStore: "mysql", RegistryStore: "x", ArtifactStorage: "ftp"},
			[]string{`KIND_NAMESPACE is "Up"`, `BACKEND_STORE is "mysql": set it to sqlite or postgres`, `REGISTRY_STORE is "x"`, `ARTIFACT_STORAGE is "ftp": set it to file or s3`},
		},
		"TLS without servers": {
			withOptions(func(o *Options) { o.PostgresTLS, o.SeaweedFSTLS = true, true }),
			[]string{"POSTGRES_TLS is true, but there is no PostgreSQL", "SEAWEEDFS_TLS is true, but there is no SeaweedFS"},
		},
		"two CA bundles": {
			withOptions(func(o *Options) { o.CABundlePath, o.CABundleConfigMap = "f", "c" }), []string{"CA_BUNDLE_CONFIGMAP excludes CA_BUNDLE_PATH"},
		},
		"CA bundle and TLS": {
			withOptions(func(o *Options) { o.BackendStore, o.PostgresTLS, o.CABundleConfigMap = Postgres, true, "c" }), []string{"CA_BUNDLE_CONFIGMAP excludes"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.options.Validate()
			if err == nil {
				t.Fatal("want an error for invalid options")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got error %v, want %q in it", err, want)
				}
			}
			if _, err := Render(c.options); err == nil {
				t.Error("want an error of Render for invalid options")
			}
		})
	}
}
