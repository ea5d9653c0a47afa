package resources

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
)

const envSSLMode = "PGSSLMODE"

// inlineStore is a store URI that stands in the spec itself.
type inlineStore struct{ Field, URI string }

// InlineStores are the URIs in the spec that are used: a Secret wins over them.
func InlineStores(m *mlflowv1.MLflow) []inlineStore {
	var found []inlineStore
	for _, s := range []struct {
		inlineStore
		overruled bool
	}{
		{inlineStore{"backendStoreUri", m.Spec.BackendStoreURI}, m.Spec.BackendStoreURIFrom != nil},
		{inlineStore{"readReplicaBackendStoreUri", m.Spec.ReadReplicaBackendStoreURI}, m.Spec.ReadReplicaBackendStoreURIFrom != nil},
		{inlineStore{"registryStoreUri", m.Spec.RegistryStoreURI}, m.Spec.RegistryStoreURIFrom != nil},
	} {
		if s.URI != "" && !s.overruled {
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
	for _, s := range InlineStores(m) {
		if strings.HasPrefix(s.URI, "postgresql") && queryOf(s.URI).Has("sslmode") {
			return true
		}
	}
	return false
}

// userinfo finds the password before the last @ of the host part. Passwords in
// the wild are not always escaped, so this does not ask that the URI be valid.
var userinfo = regexp.MustCompile(`^[^:]+://[^/?#:@]*:[^/]*[^/]@`)

// HoldsPassword reports whether a store URI shows a password.
func HoldsPassword(uri string) bool {
	if userinfo.MatchString(uri) {
		return true
	}
	query := queryOf(uri)
	return query.Get("password") != "" || query.Get("passwd") != ""
}

// queryOf is what follows the question mark of a URI, as far as it can be read.
func queryOf(uri string) url.Values {
	_, text, _ := strings.Cut(uri, "?")
	text, _, _ = strings.Cut(text, "#")
	values, _ := url.ParseQuery(text) // holds what could be read
	return values
}

// StoresHash stands for the settings that say which databases are migrated.
func StoresHash(m *mlflowv1.MLflow) string {
	stores := slices.DeleteFunc(storeEnv(m), func(v envVar) bool { return *v.Name == envReadReplica })
	text, err := json.Marshal(stores)
	utilruntime.Must(err) // of texts
	return ShortHash(string(text))
}

// ShortHash distinguishes texts; it is never empty.
func ShortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}
