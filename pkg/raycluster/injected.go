package raycluster

import (
	"slices"

	"github.com/odh-platform/odh-platform-operator/pkg/nested"
)

// Injected is what of ours is in a pod spec: in the head template of a stored cluster, or in a pod.
type Injected struct {
	// Sidecar is the way in which the sidecar guards the dashboard; AuthNone when there is none.
	Sidecar Auth
	// Token tells that the sidecar has the token of its account from a volume of its own, so that the account need not give
	// it to every container.
	Token bool
	// MTLS tells that the pod mounts certificates of its cluster; PodIssued that it issues them itself.
	MTLS, PodIssued bool
	// Encrypted tells that Ray serves with them: without the variable an application speaks plain text.
	Encrypted bool
	// RayToken tells that Ray is configured to ask for a token, at its dashboard too. That its version can is not known.
	RayToken bool
}

const (
	variableTLS  = "RAY_USE_TLS"
	variableAuth = "RAY_AUTH_MODE" // written by KubeRay for spec.authOptions
)

// TellingVariables and Volumes are the names of what Injected goes by, beside the containers.
var (
	ReadVariables = []string{variableTLS, variableAuth}
	Volumes       = []string{VolumeProxyTLS, VolumeProxyConfig, VolumeToken, VolumeCA, VolumeServer}
)

// Injected looks at the head template.
func (c Cluster) Injected() Injected { return c.InjectedInto(c.headPod()) }

// InjectedInto looks at a pod spec of the cluster. An element is ours when it says what we write, and not by its name alone: a
// user may have a container or a volume of such a name.
func (c Cluster) InjectedInto(pod any) Injected {
	ours := c.Managed()
	volumes, containers := nested.List(pod, "volumes"), nested.List(pod, "containers")
	found := Injected{MTLS: ours.HasAuthority(volumes)}
	if found.MTLS {
		server := nested.Named(volumes, VolumeServer)
		_, secret := server["secret"]
		found.MTLS, found.PodIssued = server != nil, server != nil && !secret
	}
	found.Encrypted = found.MTLS && variable(nested.At(pod, "containers", "0"), variableTLS) == "1"
	found.RayToken = variable(nested.At(pod, "containers", "0"), variableAuth) == "token"
	for _, container := range containers {
		if fields := nested.Map(container); fields != nil && found.Sidecar == AuthNone {
			found.Sidecar = ours.Sidecar(fields, volumes)
		}
	}
	token := nested.Named(volumes, VolumeToken)
	found.Token = token != nil && ours.HasVolume(token, volumes)
	return found
}

// variable is the value of an environment variable of a container; empty unless all entries of the name agree.
func variable(container any, name string) string {
	var value string
	env := nested.List(container, "env")
	for i, at := range nested.Indexes(env, name) {
		if given := nested.Text(env[at], "value"); i == 0 {
			value = given
		} else if given != value {
			return ""
		}
	}
	return value
}

// Ours tells by the names of objects what in a pod spec of one cluster was written by this program or by the CodeFlare
// operator: legacy names and hashed ones.
type Managed struct{ legacy, hashed Names }

// Ours of this cluster.
func (c Cluster) Managed() Managed { return Managed{c.LegacyNames(), c.HashedNames()} }

func (o Managed) matchesName(value any, name func(Names) string) bool {
	return value == name(o.legacy) || value == name(o.hashed)
}

// Sidecar is the way in which a container guards the dashboard, if it is a sidecar of ours; the volumes are those of its pod.
func (o Managed) Sidecar(container map[string]any, volumes []any) Auth {
	switch container["name"] {
	case ContainerOAuth:
		if slices.ContainsFunc(nested.List(container, "args"), func(arg any) bool {
			return o.matchesName(arg, func(n Names) string { return "--openshift-service-account=" + n.ServiceAccount })
		}) {
			return AuthOAuth
		}
	case ContainerProxy:
		mounts, rules := nested.List(container, "volumeMounts"), nested.Named(volumes, VolumeProxyConfig)
		if nested.Named(mounts, VolumeProxyTLS) != nil && nested.Named(mounts, VolumeProxyConfig) != nil && rules != nil && o.HasVolume(rules, volumes) {
			return AuthProxy
		}
	}
	return AuthNone
}

// Volume tells whether a volume is ours, among those of its pod.
func (o Managed) HasVolume(volume map[string]any, volumes []any) bool {
	secret := nested.At(volume, "secret", "secretName")
	switch volume["name"] {
	case VolumeProxyTLS:
		return o.matchesName(secret, func(n Names) string { return n.ProxyTLS })
	case VolumeToken:
		return volume["projected"] != nil || o.matchesName(secret, func(n Names) string { return n.TokenSecret })
	case VolumeProxyConfig:
		return o.matchesName(nested.At(volume, "configMap", "name"), func(n Names) string { return n.ProxyConfig })
	case VolumeCA, VolumeServer:
		return o.HasAuthority(volumes)
	}
	return false
}

// Authority tells whether volumes have the authority of the cluster. Everything else of our certificates comes with it.
func (o Managed) HasAuthority(volumes []any) bool {
	return o.matchesName(nested.At(nested.Named(volumes, VolumeCA), "secret", "secretName"), func(n Names) string { return n.CASecret })
}

// Certificate tells whether an init container is ours, in a pod that has the authority.
func (o Managed) HasInitContainer(container map[string]any) bool {
	return container["name"] == InitCertificate && nested.Named(nested.List(container, "volumeMounts"), VolumeServer) != nil
}

// headPod is the pod spec of the head.
func (c Cluster) headPod() any {
	return nested.At(c.object, "spec", "headGroupSpec", "template", "spec")
}
