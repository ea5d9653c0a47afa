package modelcatalog

import (
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/server"
	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/resources"
)

// The certificate of the database is issued if TLS is enabled, and a new certificate restarts the pods of server and database.
func TestDatabaseTLS(t *testing.T) {
	env := newTestEnv(t, newCatalog(withDatabase(aihubv1alpha1.CatalogDatabase{ServerTLS: server.Enabled})))
	env.reconcileUntilStable()
	secret := &corev1.Secret{ObjectMeta: nameMeta(resources.DatabaseCertificate)}
	if !env.get(secret) || len(secret.Data["ca.crt"]) == 0 || !metav1.IsControlledBy(secret, newCatalog()) {
		t.Fatalf("got Secret %v, want a certificate with its CA that the Catalog controls", secret)
	}
	if names := env.takeRollouts(); len(names) > 0 {
		t.Fatalf("creating a Catalog restarted the pods of %v", names)
	}
	first := string(secret.Data["tls.crt"])
	env.update(secret, func() { secret.Data["tls.key"] = []byte("damaged") })
	env.reconcileUntilStable()
	if env.get(secret); string(secret.Data["tls.crt"]) == first {
		t.Error("the certificate was not reissued")
	}
	if names := strings.Join(env.takeRollouts(), " "); names != resources.Name+" "+resources.DatabaseName {
		t.Errorf("reissuing the certificate restarted the pods of %q", names)
	}
	plain := newTestEnv(t, newCatalog())
	plain.reconcileUntilStable()
	if plain.get(&corev1.Secret{ObjectMeta: nameMeta(resources.DatabaseCertificate)}) {
		t.Error("a certificate was issued, although no Catalog needs one")
	}
}

// The Deployment of the database is not created before its certificate, because a later certificate would replace the pod.
func TestDatabaseTLSErrors(t *testing.T) {
	env := newTestEnv(t, newCatalog(withDatabase(aihubv1alpha1.CatalogDatabase{ServerTLS: server.Enabled})))
	env.fail = func(string) error {
		if n := len(env.writes); n > 0 && strings.HasSuffix(env.writes[n-1], "/"+resources.DatabaseCertificate) {
			return errBroken
		}
		return nil
	}
	if _, err := env.reconcile(); !errors.Is(err, errBroken) {
		t.Errorf("reconcile returned %v, want the injected error", err)
	}
	if env.get(&appsv1.Deployment{ObjectMeta: nameMeta(resources.DatabaseName)}) {
		t.Error("the Deployment of the database was created before its certificate")
	}
}

// With a connection Secret, the operator creates no database, and the server reads the connection from that Secret.
func TestConnectionSecretReplacesManagedDatabase(t *testing.T) {
	c := newCatalog(withDatabase(aihubv1alpha1.CatalogDatabase{Connection: &aihubv1alpha1.DatabaseConnection{SecretName: "app", SSLMode: "require"}}))
	env := newTestEnv(t, c)
	env.reconcileUntilStable()
	if env.get(&appsv1.Deployment{ObjectMeta: nameMeta(resources.DatabaseName)}) || env.get(&corev1.Secret{ObjectMeta: nameMeta(resources.DatabaseName)}) {
		t.Error("the database of the operator exists in addition to the external one")
	}
	d := &appsv1.Deployment{ObjectMeta: nameMeta(resources.Name)}
	env.get(d)
	got := map[string]string{}
	for _, e := range d.Spec.Template.Spec.Containers[0].Env {
		if strings.HasPrefix(e.Name, "PG") {
			got[e.Name] = e.Value
			if e.ValueFrom != nil {
				got[e.Name] = e.ValueFrom.SecretKeyRef.Name + "/" + e.ValueFrom.SecretKeyRef.Key
			}
		}
	}
	for variable, want := range map[string]string{
		"PGHOST": "app/host", "PGPORT": "app/port", "PGDATABASE": "app/dbname", "PGUSER": "app/user", "PGPASSWORD": "app/password", "PGSSLMODE": "require",
	} {
		if got[variable] != want {
			t.Errorf("%s is %q, want %q", variable, got[variable], want)
		}
	}
}
