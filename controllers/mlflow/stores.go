package mlflow

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/conditions"
)

const envSSLMode = "PGSSLMODE"

// inlineStore is a store URI that stands in the spec itself.
type inlineStore struct{ field, uri string }

// inlineStores are the URIs in the spec that are used: a Secret wins over them.
func inlineStores(m *mlflowv1.MLflow) []inlineStore {
	var found []inlineStore
	for _, s := range []struct {
		inlineStore
		overruled bool
	}{
		{inlineStore{"backendStoreUri", m.Spec.BackendStoreURI}, m.Spec.BackendStoreURIFrom != nil},
		{inlineStore{"readReplicaBackendStoreUri", m.Spec.ReadReplicaBackendStoreURI}, m.Spec.ReadReplicaBackendStoreURIFrom != nil},
		{inlineStore{"registryStoreUri", m.Spec.RegistryStoreURI}, m.Spec.RegistryStoreURIFrom != nil},
	} {
		if s.uri != "" && !s.overruled {
			found = append(found, s.inlineStore)
		}
	}
	return found
}

// choosesSSLMode reports whether the user says how PostgreSQL is to verify: by
// the variable, or in a URI, which libpq follows in preference to the variable.
func choosesSSLMode(m *mlflowv1.MLflow) bool {
	for _, e := range m.Spec.Env {
		if e.Name == envSSLMode {
			return true
		}
	}
	for _, s := range inlineStores(m) {
		if strings.HasPrefix(s.uri, "postgresql") && queryOf(s.uri).Has("sslmode") {
			return true
		}
	}
	return false
}

// userinfo finds the password before the last @ of the host part. Passwords in
// the wild are not always escaped, so this does not ask that the URI be valid.
var userinfo = regexp.MustCompile(`^[^:]+://[^/?#:@]*:[^/]*[^/]@`)

// holdsPassword reports whether a store URI shows a password.
func holdsPassword(uri string) bool {
	if userinfo.MatchString(uri) {
		return true
	}
	query := queryOf(uri)
	return query.Get("password") != "" || query.Get("passwd") != ""
}

// reportCredentials warns of passwords in the spec, which whoever may read the MLflow, its Deployment or its pods can see,
// and takes the warning back when they are gone. Nothing else depends on it.
func reportCredentials(m *mlflowv1.MLflow) {
	var found, cures []string
	for _, s := range inlineStores(m) {
		if holdsPassword(s.uri) {
			found, cures = append(found, "spec."+s.field), append(cures, "spec."+s.field+"From")
		}
	}
	if len(found) == 0 {
		conditions.Remove(&m.Status.Conditions, ConditionCredentials)
		return
	}
	setCondition(m, ConditionCredentials, metav1.ConditionTrue, ReasonPasswordInURI, fmt.Sprintf(
		"%s holds a password that is visible to everybody who may read the MLflow, its Deployment or its pods; "+
			"put the URI into a Secret, name that in %s, and change the password",
		strings.Join(found, " and "), strings.Join(cures, " and ")))
}

// queryOf is what follows the question mark of a URI, as far as it can be read.
func queryOf(uri string) url.Values {
	_, text, _ := strings.Cut(uri, "?")
	text, _, _ = strings.Cut(text, "#")
	values, _ := url.ParseQuery(text) // holds what could be read
	return values
}
