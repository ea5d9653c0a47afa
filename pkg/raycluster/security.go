package raycluster

import (
	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	"k8s.io/utils/ptr"
)

// OwnSecurity is what KubeRay does for a cluster by itself, so that it must not be done twice.
//
// The fields can only be in an object when the KubeRay that is installed knows them: others are dropped by the API server.
type OwnSecurity struct {
	// Token tells that Ray itself asks for a token, also at the dashboard (spec.authOptions, KubeRay 1.5.1).
	Token bool
	// KubernetesToken tells that the token is one of Kubernetes, which the pods of Ray check with their own account
	// (spec.authOptions.enableK8sTokenAuth, KubeRay 1.6).
	KubernetesToken bool
	// MTLS tells that KubeRay has certificates issued (spec.tlsOptions, KubeRay 1.7).
	MTLS bool
	// NetworkPolicy tells that KubeRay makes NetworkPolicies (spec.networkPolicy, KubeRay 1.7).
	NetworkPolicy bool
}

// OwnSecurity looks for what KubeRay does by itself.
func (c Cluster) OwnSecurity() OwnSecurity {
	auth := ptr.Deref(c.spec.AuthOptions, rayv1.AuthOptions{})
	token := auth.Mode == rayv1.AuthModeToken
	return OwnSecurity{
		Token: token, KubernetesToken: token && ptr.Deref(auth.EnableK8sTokenAuth, false),
		MTLS: c.spec.TLSOptions.Enabled, NetworkPolicy: c.spec.NetworkPolicy != nil,
	}
}
