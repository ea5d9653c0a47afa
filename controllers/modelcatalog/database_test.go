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

// The certificate of the database is issued if enabled, and its renewal restarts the pods of server and database.
func TestDatabaseTLS(t *testing.T) {
	b := newTestEnv(t, sample(withDatabase(aihubv1alpha1.CatalogDatabase{ServerTLS: server.Enabled})))
	b.reconcileUntilStable()
	secret := &corev1.Secret{ObjectMeta: nameMeta(resources.DatabaseCertificate)}
	if !b.get(secret) || len(secret.Data["ca.crt"]) == 0 || !metav1.IsControlledBy(secret, sample()) {
		t.Fatalf("got Secret %v, want a certificate with its CA that the Catalog controls", secret)
	}
	if names := b.rolled(); len(names) > 0 {
		t.Fatalf("creating a Catalog restarted the pods of %v", names)
	}
	first := string(secret.Data["tls.crt"])
	b.update(secret, func() { secret.Data["tls.key"] = []byte("damaged") })
	b.reconcileUntilStable()
	if b.get(secret); string(secret.Data["tls.crt"]) == first {
		t.Error("the certificate was not reissued")
	}
	if names := strings.Join(b.rolled(), " "); names != resources.Name+" "+resources.DatabaseName {
		t.Errorf("reissuing the certificate restarted the pods of %q", names)
	}
	plain := newTestEnv(t, sample())
	plain.reconcileUntilStable()
	if plain.get(&corev1.Secret{ObjectMeta: nameMeta(resources.DatabaseCertificate)}) {
		t.Error("a certificate was issued, although no Catalog needs one")
	}
}

// The database does not start without its certificate, so that no pod is replaced before it exists.
func TestDatabaseTLSErrors(t *testing.T) {
	b := newTestEnv(t, sample(withDatabase(aihubv1alpha1.CatalogDatabase{ServerTLS: server.Enabled})))
	b.fail = func(string) error {
		if n := len(b.writes); n > 0 && strings.HasSuffix(b.writes[n-1], "/"+resources.DatabaseCertificate) {
			return errBroken
		}
		return nil
	}
	if _, err := b.reconcile(); !errors.Is(err, errBroken) {
		t.Errorf("reconcile returned %v, want the injected error", err)
	}
	if b.get(&appsv1.Deployment{ObjectMeta: nameMeta(resources.DatabaseName)}) {
		t.Error("the Deployment of the database was created before its certificate")
	}
}

// A connection Secret replaces the managed database, whose Secret the server no longer reads.
func TestConnectionSecretReplacesManagedDatabase(t *testing.T) {
	c := sample(withDatabase(aihubv1alpha1.CatalogDatabase{Connection: &aihubv1alpha1.DatabaseConnection{SecretName: "app", SSLMode: "require"}}))
	b := newTestEnv(t, c)
	b.reconcileUntilStable()
	if b.get(&appsv1.Deployment{ObjectMeta: nameMeta(resources.DatabaseName)}) || b.get(&corev1.Secret{ObjectMeta: nameMeta(resources.DatabaseName)}) {
		t.Error("the database of the operator exists in addition to the external one")
	}
	d := &appsv1.Deployment{ObjectMeta: nameMeta(resources.Name)}
	b.get(d)
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
