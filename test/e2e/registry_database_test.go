//go:build e2e

package e2e_test

import (
	"context"
	_ "embed"
	"fmt"
	"net/http"
	"net/url"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

//go:embed testdata/shared_database.yaml
var sharedDatabaseObjects string

// expectEncryptedDatabase expects that all connections of the registry late to its database use TLS.
func expectEncryptedDatabase(ctx context.Context, namespace string) {
	GinkgoHelper()
	const connections = `psql -h /run/postgresql -U postgres -Atc ` +
		`"SELECT DISTINCT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE client_addr IS NOT NULL"`
	Expect(tryKubectl(ctx, "", "-n", namespace, "exec", "deployment/late-postgres", "--", "sh", "-c", connections)).To(Equal("t"))
}

// expectBackup runs the CronJob for backups of the registry late once.
func expectBackup(ctx context.Context, namespace string) {
	GinkgoHelper()
	kubectl(ctx, "-n", namespace, "create", "job", "backup", "--from=cronjob/late-postgres-backup")
	kubectl(ctx, "-n", namespace, "wait", "--for=condition=Complete", "job/backup", fmt.Sprint("--timeout=", podTimeout))
	Expect(kubectl(ctx, "-n", namespace, "logs", "job/backup")).To(ContainSubstring("Wrote ./model_registry-"))
}

// expectSharedDatabase expects that a registry which references the database of the registry late by a Secret serves the same models.
func expectSharedDatabase(ctx context.Context, namespace string) {
	GinkgoHelper()
	server := &registryClient{namespace: namespace, base: "http://late:8080"}
	status, body, err := server.request(ctx, http.MethodPost, "", `{"name": "by-tls", "customProperties": {}}`)
	Expect(err).NotTo(HaveOccurred())
	Expect(status).To(Equal(http.StatusCreated), body)

	credential := func(key string) string {
		return kubectl(ctx, "-n", namespace, "get", "secret", "late-postgres-credentials", "-o", "go-template={{.data."+key+" | base64decode}}")
	}
	uri := url.URL{
		Scheme: "postgresql", User: url.UserPassword(credential("username"), credential("password")),
		Host: "late-postgres." + namespace + ".svc:5432", Path: "model_registry",
	}
	kubectl(ctx, "-n", namespace, "create", "secret", "generic", "late-app", "--from-literal=uri="+uri.String())
	apply(ctx, namespace, sharedDatabaseObjects)
	kubectl(ctx, "-n", namespace, "wait", "--for=condition=Available", "modelregistry/sharing", fmt.Sprint("--timeout=", podTimeout))
	server.base = "http://sharing:8080"
	Expect(server.names(ctx)).To(ConsistOf("by-tls"))
}
