package resources

import corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

// VerifyFull is the mode of TLS in which a client of PostgreSQL verifies the server and its name.
const VerifyFull = "verify-full"

// ConnectionURIKey is the key in which CloudNativePG and Crunchy Postgres for Kubernetes write the address of a database with user and
// password, escaped as a URL needs it.
const ConnectionURIKey = "uri"

// ConnectionKeys are the keys of the same Secrets, by the variable of libpq that has the same meaning.
var ConnectionKeys = []struct{ Variable, Key string }{
	{"PGHOST", "host"}, {"PGPORT", "port"}, {"PGDATABASE", "dbname"}, {"PGUSER", "user"}, {"PGPASSWORD", "password"},
}

// ConnectionEnv is the way to a database that such a Secret describes, as variables of libpq.
func PostgresConnectionEnv(secret string) []*corev1ac.EnvVarApplyConfiguration {
	env := make([]*corev1ac.EnvVarApplyConfiguration, 0, len(ConnectionKeys))
	for _, k := range ConnectionKeys {
		env = append(env, SecretEnvVar(k.Variable, secret, k.Key))
	}
	return env
}
