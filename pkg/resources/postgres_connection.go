package resources

import corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

// VerifyFull is the sslmode in which a client verifies the certificate and name of the server.
const VerifyFull = "verify-full"

// ConnectionURIKey is the key of CloudNativePG and Crunchy Postgres for Kubernetes with the URL of a database, including the escaped user
// and password.
const ConnectionURIKey = "uri"

// ConnectionKeys are the other keys of these Secrets, by libpq variable.
var ConnectionKeys = []struct{ Variable, Key string }{
	{"PGHOST", "host"}, {"PGPORT", "port"}, {"PGDATABASE", "dbname"}, {"PGUSER", "user"}, {"PGPASSWORD", "password"},
}

// PostgresConnectionEnv returns the libpq variables of the database that such a Secret describes.
func PostgresConnectionEnv(secret string) []*corev1ac.EnvVarApplyConfiguration {
	env := make([]*corev1ac.EnvVarApplyConfiguration, 0, len(ConnectionKeys))
	for _, k := range ConnectionKeys {
		env = append(env, SecretEnvVar(k.Variable, secret, k.Key))
	}
	return env
}
