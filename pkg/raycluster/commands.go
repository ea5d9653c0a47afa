package raycluster

import "strings"

// Directories in the containers of Ray. Clients and images know them.
const (
	workspace = "/home/ray/workspace"
	caDir     = workspace + "/ca"
	tlsDir    = workspace + "/tls"
)

// SignCommand is the init container's command of the original form: each pod makes a key and signs a certificate for itself
// with the key of the authority. Heads have two more names; for workers there are none. The text is compared with that of
// existing clusters, so it cannot change.
func SignCommand(moreNames ...string) []string {
	names := []string{"127.0.0.1", "localhost", "${FQ_RAY_IP}", "$(awk 'END{print $1}' /etc/hosts)"}
	lines := []string{"authorityKeyIdentifier=keyid,issuer", "basicConstraints=CA:FALSE", "subjectAltName = @alt_names", "[alt_names]"}
	for i, name := range append(names, moreNames...) {
		lines = append(lines, "DNS."+string(rune('1'+i))+" = "+name)
	}
	return shell(strings.Join([]string{
		"cd " + tlsDir,
		"openssl req -nodes -newkey rsa:2048 -keyout server.key -out server.csr -subj '/CN=ray-head'",
		`printf "` + strings.Join(lines, `\n`) + `" >./domain.ext`,
		"cp " + caDir + "/* .",
		"openssl x509 -req -CA ca.crt -CAkey ca.key -in server.csr -out server.crt -days 365 -CAcreateserial -extfile domain.ext",
	}, " && "))
}

// WaitCommand is the init container's command where certificates come in a Secret: it ends as soon as the mounted one is
// valid, signed by the mounted authority, and for the address of this pod. It reads RAY_TLS_SERVER_CERT, RAY_TLS_CA_CERT and
// MY_POD_IP. openssl says whether an address matches in words, and not in its exit code. KubeRay runs the template of the
// head once more when it cleans up a Redis, when no certificates are issued any more: RAY_NODE_TYPE is redis-cleanup then.
func WaitCommand() []string {
	return shell(`[ "$RAY_NODE_TYPE" = redis-cleanup ] && exit 0; until openssl x509 -in "$RAY_TLS_SERVER_CERT" -noout -checkend 0 >/dev/null 2>&1` +
		` && openssl verify -CAfile "$RAY_TLS_CA_CERT" "$RAY_TLS_SERVER_CERT" >/dev/null 2>&1` +
		` && case "$(openssl x509 -in "$RAY_TLS_SERVER_CERT" -noout -checkip "$MY_POD_IP" 2>/dev/null)" in *" does match certificate"*) true;; *) false;; esac;` +
		` do echo "waiting for a certificate for $MY_POD_IP"; sleep 1; done`)
}

func shell(script string) []string { return []string{"sh", "-c", script} }
