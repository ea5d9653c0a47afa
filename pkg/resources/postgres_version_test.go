package resources

import "testing"

func TestPostgresMajorVersion(t *testing.T) {
	for image, want := range map[string]int32{
		"quay.io/sclorg/postgresql-16-c10s:latest":                       16,
		"quay.io/sclorg/postgresql-16-c10s:20260610":                     16,
		"registry.redhat.io/rhel9/postgresql-15@sha256:0123":             15,
		"registry.redhat.io/rhel9/postgresql-16:9.5-1749":                16,
		"mirror.example.com:5000/a/postgresql-13-centos7:17@sha256:0123": 13,
		"postgres:17":                             17,
		"postgres:16.4-alpine":                    16,
		"postgres16:latest":                       16,
		"docker.io/bitnami/postgresql:16.3.0-r14": 16,
		"ghcr.io/cloudnative-pg/postgresql:v9.6":  9,
		"postgres:latest":                         0,
		"postgres":                                0,
		"postgres@sha256:1616":                    0,
		"postgresql:20260610":                     0,
		"example.com/postgresql-16/database:1":    0, // not the image name
		"example.com/database:16":                 0, // not an image of PostgreSQL
		"":                                        0,
	} {
		if got := PostgresMajorVersion(image); got != want {
			t.Errorf("%s: got %d, want %d", image, got, want)
		}
	}
}

func TestPostgresRepository(t *testing.T) {
	for image, want := range map[string]string{
		"quay.io/sclorg/postgresql-16-c10s:latest":           "quay.io/sclorg/postgresql--c10s",
		"registry.redhat.io/rhel9/postgresql-15@sha256:0123": "registry.redhat.io/rhel9/postgresql-",
		"mirror.example.com:5000/a/db:17@sha256:0123":        "mirror.example.com:5000/a/db",
		"postgres:17": "postgres",
		"":            "",
	} {
		if got := PostgresRepository(image); got != want {
			t.Errorf("%s: got %s, want %s", image, got, want)
		}
	}
}
