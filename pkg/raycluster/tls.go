package raycluster

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/nested"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// TLS builds the elements that encrypt the traffic of the pods of one group.
type TLS struct {
	Issuer Issuer
	// Names of the cluster.
	Names Names
	// Head selects the head instead of workers.
	Head bool
	// SignedNames are the additional names in the certificate that a head signs for itself, see SignCommand.
	SignedNames []string
	// Image of the init container; it contains sh and openssl.
	Image string
	// Resources are the default resources of the init container; users may set others.
	Resources corev1.ResourceRequirements
	// Pod is the pod spec of the group: the init container runs as the Ray container does.
	Pod map[string]any
	// OpenShift reports whether SecurityContextConstraints assign the users of containers.
	OpenShift bool
}

// TLSEnv returns the variables of a Ray container, in the order of the CodeFlare operator.
func TLSEnv() []*corev1ac.EnvVarApplyConfiguration {
	return []*corev1ac.EnvVarApplyConfiguration{
		fieldEnv("MY_POD_IP", "status.podIP"),
		corev1ac.EnvVar().WithName("RAY_USE_TLS").WithValue("1"),
		corev1ac.EnvVar().WithName("RAY_TLS_SERVER_CERT").WithValue(tlsDir + "/server.crt"),
		corev1ac.EnvVar().WithName("RAY_TLS_SERVER_KEY").WithValue(tlsDir + "/server.key"),
		corev1ac.EnvVar().WithName("RAY_TLS_CA_CERT").WithValue(tlsDir + "/ca.crt"),
	}
}

func fieldEnv(name, path string) *corev1ac.EnvVarApplyConfiguration {
	return corev1ac.EnvVar().WithName(name).WithValueFrom(corev1ac.EnvVarSource().WithFieldRef(corev1ac.ObjectFieldSelector().WithFieldPath(path)))
}

// Volumes returns the volumes of the pod. Only pods that sign their own certificate get the key of the CA.
func (t TLS) Volumes() []*corev1ac.VolumeApplyConfiguration {
	if t.Issuer == IssuerPod {
		return []*corev1ac.VolumeApplyConfiguration{
			resources.SecretVolume(VolumeCA, t.Names.CASecret),
			corev1ac.Volume().WithName(VolumeServer).WithEmptyDir(corev1ac.EmptyDirVolumeSource()),
		}
	}
	secret := t.Names.WorkerTLS
	if t.Head {
		secret = t.Names.HeadTLS
	}
	return []*corev1ac.VolumeApplyConfiguration{
		resources.SecretVolume(VolumeCA, t.Names.CASecret, keyToPath(KeyCACert, "ca.crt")),
		resources.SecretVolume(VolumeServer, secret, keyToPath(corev1.TLSCertKey, "server.crt"), keyToPath(corev1.TLSPrivateKeyKey, "server.key"), keyToPath(KeyCACert, "ca.crt")),
	}
}

func keyToPath(key, path string) *corev1ac.KeyToPathApplyConfiguration {
	return corev1ac.KeyToPath().WithKey(key).WithPath(path)
}

// Mounts returns the mounts of the Ray container and of the init container.
func (t TLS) Mounts() []*corev1ac.VolumeMountApplyConfiguration {
	server := resources.Mount(VolumeServer, tlsDir)
	if t.Issuer != IssuerPod {
		server.WithReadOnly(true)
	}
	return []*corev1ac.VolumeMountApplyConfiguration{resources.ReadOnlyMount(VolumeCA, caDir), server}
}

// InitContainer returns the init container, which signs a certificate, or waits until the Secret contains one.
func (t TLS) InitContainer() *corev1ac.ContainerApplyConfiguration {
	container := corev1ac.Container().
		WithName(InitCertificate).
		WithImage(t.Image).
		WithVolumeMounts(t.Mounts()...).
		WithResources(resources.Requirements(t.Resources.Requests, t.Resources.Limits)).
		WithSecurityContext(t.securityContext())
	if t.Issuer != IssuerPod {
		env := TLSEnv()
		return container.WithCommand(WaitCommand()...).WithEnv(env[0], fieldEnv("RAY_NODE_TYPE", "metadata.labels['"+LabelNodeType+"']"), env[2], env[4])
	}
	if t.Head {
		return container.WithCommand(SignCommand(t.SignedNames...)...)
	}
	return container.WithCommand(SignCommand()...)
}

// securityContext returns the security context of the init container, which runs as the user of the Ray container. On OpenShift it sets
// runAsNonRoot and runAsUser only if the Ray container does: the image runs as root, and SecurityContextConstraints may assign another
// user.
func (t TLS) securityContext() *corev1ac.SecurityContextApplyConfiguration {
	security := resources.SidecarSecurity()
	if !t.OpenShift {
		user := RunAsUser(t.Pod)
		if security.WithRunAsUser(user); user == 0 {
			security.RunAsNonRoot = nil
		}
		return security
	}
	security.RunAsNonRoot = nil
	rayContext := nested.At(t.Pod, "containers", "0", "securityContext")
	if nonRoot, ok := nested.At(rayContext, "runAsNonRoot").(bool); ok {
		security.WithRunAsNonRoot(nonRoot)
	}
	if user, ok := nested.At(rayContext, "runAsUser").(int64); ok {
		security.WithRunAsUser(user)
	}
	return security
}

// RunAsUser returns the user id of the Ray container of a pod spec, or that of Ray's images if the spec does not set one.
func RunAsUser(pod map[string]any) int64 {
	for _, level := range []any{nested.At(pod, "containers", "0"), pod} {
		if id, ok := nested.At(level, "securityContext", "runAsUser").(int64); ok {
			return id
		}
	}
	return rayUser
}

// rayUser is the user id of Ray's images.
const rayUser = 1000

// Directories in the containers of Ray. Clients and images depend on them.
const (
	workspace = "/home/ray/workspace"
	caDir     = workspace + "/ca"
	tlsDir    = workspace + "/tls"
)

// SignCommand returns the init container's command for IssuerPod: the pod creates a key and signs a certificate with the key of the CA.
// Heads pass additional names, workers none. The command must equal that of the CodeFlare operator, so that its clusters are recognized.
func SignCommand(moreNames ...string) []string {
	names := []string{"127.0.0.1", "localhost", "${FQ_RAY_IP}", "$(awk 'END{print $1}' /etc/hosts)"}
	lines := []string{"authorityKeyIdentifier=keyid,issuer", "basicConstraints=CA:FALSE", "subjectAltName = @alt_names", "[alt_names]"}
	for i, name := range append(names, moreNames...) {
		lines = append(lines, "DNS."+string(rune('1'+i))+" = "+name)
	}
	return shellCommand(strings.Join([]string{
		"cd " + tlsDir,
		"openssl req -nodes -newkey rsa:2048 -keyout server.key -out server.csr -subj '/CN=ray-head'",
		`printf "` + strings.Join(lines, `\n`) + `">./domain.ext`,
		"cp " + caDir + "/* .",
		"openssl x509 -req -CA ca.crt -CAkey ca.key -in server.csr -out server.crt -days 365 -CAcreateserial -extfile domain.ext",
	}, " && "))
}

// WaitCommand returns the init container's command for certificates in a Secret. The command waits until the mounted certificate is valid,
// signed by the mounted CA, and contains the address of the pod. openssl reports the match of an address only in its output. To clean up
// Redis, KubeRay runs the head template with node type redis-cleanup, for which no certificate is issued.
func WaitCommand() []string {
	return shellCommand(`[ "$RAY_NODE_TYPE" = redis-cleanup ] && exit 0; until openssl x509 -in "$RAY_TLS_SERVER_CERT" -noout -checkend 0 >/dev/null 2>&1` +
		` && openssl verify -CAfile "$RAY_TLS_CA_CERT" "$RAY_TLS_SERVER_CERT" >/dev/null 2>&1` +
		` && case "$(openssl x509 -in "$RAY_TLS_SERVER_CERT" -noout -checkip "$MY_POD_IP" 2>/dev/null)" in *" does match certificate"*) true;; *) false;; esac;` +
		` do echo "waiting for a certificate for $MY_POD_IP"; sleep 1; done`)
}

func shellCommand(script string) []string { return []string{"sh", "-c", script} }
