package raycluster

import (
	"slices"

	"github.com/odh-platform/odh-platform-operator/pkg/nested"
)

// Injected describes the injections in a pod spec: of the stored head template, or of a pod.
type Injected struct {
	// Sidecar is the authentication of the injected sidecar, or AuthNone.
	Sidecar Auth
	// HasTokenVolume reports whether the pod has a volume with the token of the sidecar, so the token need not be mounted automatically.
	HasTokenVolume bool
	// MTLS reports whether the pod mounts certificates of its cluster, PodIssued whether it issues them itself.
	MTLS, PodIssued bool
	// Encrypted reports whether Ray uses the certificates: without RAY_USE_TLS it serves plain text.
	Encrypted bool
	// RayToken reports whether Ray is configured to require a token, including at its dashboard. Old versions of Ray ignore that
	// configuration.
	RayToken bool
}

const (
	variableTLS  = "RAY_USE_TLS"
	variableAuth = "RAY_AUTH_MODE" // written by KubeRay for spec.authOptions
)

// ReadVariables and ReadVolumes are the names of the environment variables and volumes that InjectedInto reads.
var (
	ReadVariables = []string{variableTLS, variableAuth}
	ReadVolumes   = []string{VolumeProxyTLS, VolumeProxyConfig, VolumeToken, VolumeCA, VolumeServer}
)

// Injected returns the injections of the head template.
func (c Cluster) Injected() Injected { return c.InjectedInto(c.headPod()) }

// InjectedInto returns the injections of a pod spec. It compares the content of elements and not only their names: users may have a
// container or volume of the same name.
func (c Cluster) InjectedInto(pod any) Injected {
	managed := c.Managed()
	volumes, containers := nested.List(pod, "volumes"), nested.List(pod, "containers")
	found := Injected{MTLS: managed.HasAuthority(volumes)}
	if found.MTLS {
		server := nested.ByName(volumes, VolumeServer)
		_, secret := server["secret"]
		found.MTLS, found.PodIssued = server != nil, server != nil && !secret
	}
	found.Encrypted = found.MTLS && variable(nested.At(pod, "containers", "0"), variableTLS) == "1"
	found.RayToken = variable(nested.At(pod, "containers", "0"), variableAuth) == "token"
	for _, container := range containers {
		if fields := nested.Map(container); fields != nil && found.Sidecar == AuthNone {
			found.Sidecar = managed.Sidecar(fields, volumes)
		}
	}
	token := nested.ByName(volumes, VolumeToken)
	found.HasTokenVolume = token != nil && managed.HasVolume(token, volumes)
	return found
}

// variable returns the value of an environment variable, or "" if entries of that name differ.
func variable(container any, name string) string {
	var value string
	env := nested.List(container, "env")
	for i, index := range nested.Indexes(env, name) {
		if other := nested.String(env[index], "value"); i == 0 {
			value = other
		} else if other != value {
			return ""
		}
	}
	return value
}

// Managed recognizes injected elements of a pod spec by the legacy and hashed names of the objects of a cluster, as written by this
// operator or the CodeFlare operator.
type Managed struct{ legacy, hashed Names }

// Managed returns a Managed for the names of the cluster.
func (c Cluster) Managed() Managed { return Managed{c.LegacyNames(), c.HashedNames()} }

func (m Managed) matchesName(value any, name func(Names) string) bool {
	return value == name(m.legacy) || value == name(m.hashed)
}

// Sidecar returns the authentication of an injected sidecar, or AuthNone. The volumes are those of its pod.
func (m Managed) Sidecar(container map[string]any, volumes []any) Auth {
	switch container["name"] {
	case ContainerOAuth:
		if slices.ContainsFunc(nested.List(container, "args"), func(arg any) bool {
			return m.matchesName(arg, func(n Names) string { return "--openshift-service-account=" + n.ServiceAccount })
		}) {
			return AuthOAuth
		}
	case ContainerProxy:
		mounts, rules := nested.List(container, "volumeMounts"), nested.ByName(volumes, VolumeProxyConfig)
		if nested.ByName(mounts, VolumeProxyTLS) != nil && nested.ByName(mounts, VolumeProxyConfig) != nil && rules != nil && m.HasVolume(rules, volumes) {
			return AuthProxy
		}
	}
	return AuthNone
}

// HasVolume reports whether a volume of a pod is injected.
func (m Managed) HasVolume(volume map[string]any, volumes []any) bool {
	secret := nested.At(volume, "secret", "secretName")
	switch volume["name"] {
	case VolumeProxyTLS:
		return m.matchesName(secret, func(n Names) string { return n.ProxyTLS })
	case VolumeToken:
		return volume["projected"] != nil || m.matchesName(secret, func(n Names) string { return n.TokenSecret })
	case VolumeProxyConfig:
		return m.matchesName(nested.At(volume, "configMap", "name"), func(n Names) string { return n.ProxyConfig })
	case VolumeCA, VolumeServer:
		return m.HasAuthority(volumes)
	}
	return false
}

// HasAuthority reports whether volumes include the CA of the cluster, which all pods with injected certificates mount.
func (m Managed) HasAuthority(volumes []any) bool {
	return m.matchesName(nested.At(nested.ByName(volumes, VolumeCA), "secret", "secretName"), func(n Names) string { return n.CASecret })
}

// HasInitContainer reports whether an init container is injected. The pod must have the CA volume.
func (m Managed) HasInitContainer(container map[string]any) bool {
	return container["name"] == InitCertificate && nested.ByName(nested.List(container, "volumeMounts"), VolumeServer) != nil
}

func (c Cluster) headPod() any {
	return nested.At(c.object, "spec", "headGroupSpec", "template", "spec")
}
