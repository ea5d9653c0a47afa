package certificates

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/certs"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
	"github.com/odh-platform/odh-platform-operator/test/raytest"
)

// [R13] The DNS names and addresses of the certificates; an empty domain adds no name.
func TestNamesInCertificates(t *testing.T) {
	pods := []corev1.Pod{*raytest.Pod("h", raycluster.NodeTypeHead, "u", "10.0.0.1", "fd00::1"), *raytest.Pod("w", raycluster.NodeTypeWorker, "u", "10.0.0.2")}
	override := demo(t)
	if err := unstructured.SetNestedField(override.Object, "mine", "spec", "headGroupSpec", "headService", "metadata", "name"); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		cluster      *unstructured.Unstructured
		domain       string
		head, worker []string
	}{
		"with a domain": {
			demo(t), "apps.example.org",
			[]string{"127.0.0.1", "localhost", "demo-head-svc.team.svc.cluster.local", "demo-head-svc.team.svc", "demo-head-svc", "rayclient-demo-team.apps.example.org", "10.0.0.1"},
			[]string{"127.0.0.1", "localhost", "demo-head-svc.team.svc.cluster.local", "10.0.0.2"},
		},
		"without a domain": {
			demo(t), "",
			[]string{"127.0.0.1", "localhost", "demo-head-svc.team.svc.cluster.local", "demo-head-svc.team.svc", "demo-head-svc", "10.0.0.1"},
			[]string{"127.0.0.1", "localhost", "demo-head-svc.team.svc.cluster.local", "10.0.0.2"},
		},
		"head Service of the user": {
			override, "",
			[]string{"127.0.0.1", "localhost", "mine.team.svc.cluster.local", "mine.team.svc", "mine", "10.0.0.1"},
			[]string{"127.0.0.1", "localhost", "mine.team.svc.cluster.local", "10.0.0.2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := planCertificates(raycluster.View(tc.cluster.Object), Inputs{RayCluster: config.DefaultRayCluster(), Mode: byOperator, Domain: tc.domain, Pods: pods})
			if diff := cmp.Diff([][]string{tc.head, tc.worker}, [][]string{p.leaves[0].options.DNSNames, p.leaves[1].options.DNSNames}); diff != "" {
				t.Error(diff)
			}
			want := []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.IPv6Loopback(), netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::1")}
			if !slices.Equal(p.leaves[0].options.Addresses, want) {
				t.Errorf("got addresses %v, want %v", p.leaves[0].options.Addresses, want)
			}
		})
	}
}

func TestPlanCertificates(t *testing.T) {
	cluster := demo(t)
	unstructured.RemoveNestedField(cluster.Object, "spec", "workerGroupSpecs")
	rsa := config.DefaultRayCluster()
	rsa.CertificateKeyAlgorithm = "RSA"
	for name, tc := range map[string]struct {
		cluster  *unstructured.Unstructured
		mode     raycluster.Mode
		settings config.RayCluster
		want     []string // prefixes of the names of the Secrets
		key      string
	}{
		"workers":    {demo(t), byOperator, config.DefaultRayCluster(), []string{caSecretPrefix, headSecretPrefix, workerSecretPrefix}, "ECDSA"},
		"no workers": {cluster, byOperator, config.DefaultRayCluster(), []string{caSecretPrefix, headSecretPrefix}, "ECDSA"},
		"RSA":        {demo(t), byOperator, rsa, []string{caSecretPrefix, headSecretPrefix, workerSecretPrefix}, "RSA"},
		"mTLS and kube-rbac-proxy": {
			demo(t), raycluster.Mode{MTLS: true, Issuer: raycluster.IssuerOperator, Auth: raycluster.AuthProxy}, config.DefaultRayCluster(),
			[]string{caSecretPrefix, "demo-proxy-tls-secret-", headSecretPrefix, workerSecretPrefix}, "ECDSA",
		},
		"kube-rbac-proxy only":     {demo(t), raycluster.Mode{Auth: raycluster.AuthProxy}, config.DefaultRayCluster(), []string{"demo-proxy-tls-secret-"}, ""},
		"OAuth proxy of OpenShift": {demo(t), raycluster.Mode{Auth: raycluster.AuthOAuth}, config.DefaultRayCluster(), nil, ""},
		"TLS of KubeRay":           {demo(t), raycluster.Mode{}, config.DefaultRayCluster(), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := planCertificates(raycluster.View(tc.cluster.Object), Inputs{RayCluster: tc.settings, Mode: tc.mode, CertManager: true})
			got := p.secretNames()
			if len(got) != len(tc.want) {
				t.Fatalf("got %v, want %v", got, tc.want)
			}
			for i, prefix := range tc.want {
				if !strings.HasPrefix(got[i], prefix) {
					t.Errorf("got %v, want %v", got, tc.want)
				}
			}
			if string(p.root.Algorithm) != tc.key {
				t.Errorf("key algorithm of the CA %q, want %q", p.root.Algorithm, tc.key)
			}
			for _, leaf := range p.leaves {
				if string(leaf.options.Algorithm) != tc.key || leaf.options.CommonName != "ray-"+leaf.role {
					t.Errorf("unexpected leaf.options: %+v", leaf.options)
				}
			}
		})
	}
}

// The number of addresses in a certificate is limited, and the oldest pods have priority.
func TestPlanLeafLimitsAddresses(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	pods := manyPods(maxAddresses+100, start)
	slices.Reverse(pods)
	leaf := planLeaf(roleWorker, "s", "", nil, pods)
	if len(leaf.options.Addresses) != maxAddresses || leaf.excludedAddresses != 102 { // two are loopback addresses
		t.Errorf("got %d addresses and %d excluded ones, want %d and 102", len(leaf.options.Addresses), leaf.excludedAddresses, maxAddresses)
	}
	if !slices.Contains(leaf.options.Addresses, netip.MustParseAddr("10.0.0.0")) || slices.Contains(leaf.options.Addresses, netip.MustParseAddr("10.0.8.50")) {
		t.Error("want the addresses of the oldest pods in the certificate")
	}
	f, cluster := newFixture(t), demo(t)
	root, err := certs.EnsureRoot(nil, certs.RootOptions{CommonName: authorityName, Lifetime: authorityLifetime, Algorithm: certs.RSA}, start)
	if err != nil {
		t.Fatal(err)
	}
	issued, err := root.EnsureLeaf(nil, leaf.options, start)
	if err != nil {
		t.Fatal(err)
	}
	if size := len(certificateOf(t, issued.Data["tls.crt"]).Raw); size > 90_000 {
		t.Errorf("the certificate has %d bytes, want at most 90000, because Ray accepts chains of 100 kB", size)
	}
	f.memory.init(cluster)
	p := &reconciliation{Reconciler: f.Reconciler, cluster: cluster, memory: &f.memory}
	p.reportExcludedAddresses(leaf)
	if eventText := f.drainEvents(); strings.Count(eventText, "CertificateTooManyPods") != 1 || !strings.Contains(eventText, "102 more do not fit") {
		t.Errorf("unexpected Events:\n%s", eventText)
	}
	p.reportExcludedAddresses(leaf)
	if eventText := f.drainEvents(); eventText != "" {
		t.Errorf("Events were repeated:\n%s", eventText)
	}
}

// Finished pods are excluded, because they no longer use their addresses; terminating pods are included.
func TestPodsOfRole(t *testing.T) {
	pods := []corev1.Pod{
		*raytest.Pod("h", raycluster.NodeTypeHead, "u", "10.0.0.1"), *raytest.Pod("w", raycluster.NodeTypeWorker, "u", "10.0.0.2"),
		*raytest.Pod("succeeded", raycluster.NodeTypeWorker, "u", "10.0.0.3"), *raytest.Pod("failed", raycluster.NodeTypeWorker, "u", "10.0.0.4"),
		*raytest.Pod("terminating", raycluster.NodeTypeWorker, "u", "10.0.0.5"),
	}
	pods[2].Status.Phase, pods[3].Status.Phase = corev1.PodSucceeded, corev1.PodFailed
	pods[4].DeletionTimestamp = &pods[4].CreationTimestamp
	for role, want := range map[string]string{roleHead: "h", roleWorker: "w,terminating"} {
		var got []string
		for _, pod := range podsOfRole(role, pods) {
			got = append(got, pod.Name)
		}
		if strings.Join(got, ",") != want {
			t.Errorf("role %s: got pods %v, want %s", role, got, want)
		}
	}
}

func TestBuildCertificate(t *testing.T) {
	rsa := config.DefaultRayCluster()
	rsa.CertificateKeyAlgorithm = "RSA"
	for size, settings := range map[int64]config.RayCluster{256: config.DefaultRayCluster(), 2048: rsa} {
		p := planCertificates(raycluster.View(demo(t).Object), Inputs{
			RayCluster: settings, Mode: byOperator, Domain: "apps.example.org", Pods: []corev1.Pod{*raytest.Pod("h", raycluster.NodeTypeHead, "u", "10.0.0.1")},
		})
		config := buildCertificate(raycluster.View(demo(t).Object), p.leaves[0], config.Issuer{Name: "team-ca", Kind: "ClusterIssuer", Group: "cert-manager.io"})
		u := &unstructured.Unstructured{}
		raw, err := marshalJSON(config)
		if err != nil || u.UnmarshalJSON(raw) != nil {
			t.Fatal(err)
		}
		if u.GroupVersionKind() != capability.Certificate || u.GetName() != p.leaves[0].secret {
			t.Errorf("unexpected kind %s or name %s", u.GroupVersionKind(), u.GetName())
		}
		dns, _, _ := unstructured.NestedStringSlice(u.Object, "spec", "dnsNames")
		if slices.Contains(dns, "10.0.0.1") || !slices.Contains(dns, "localhost") || !slices.IsSorted(dns) {
			t.Errorf("dnsNames %v are not sorted, contain an address or lack localhost", dns)
		}
		ips, _, _ := unstructured.NestedStringSlice(u.Object, "spec", "ipAddresses")
		if !slices.Contains(ips, "10.0.0.1") {
			t.Errorf("ipAddresses %v lack the address of the pod", ips)
		}
		if got, _, _ := unstructured.NestedInt64(u.Object, "spec", "privateKey", "size"); got != size {
			t.Errorf("got a key of %d bits, want %d", got, size)
		}
	}
}
