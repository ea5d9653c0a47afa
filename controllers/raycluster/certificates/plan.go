package certificates

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/odh-platform/odh-platform-operator/controllers/raycluster/pods"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/certs"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

const (
	// authorityName is the whole subject of the CA of a cluster. Clients issue certificates with this issuer.
	authorityName = "root-ca"
	// leafLifetime is how long a process of Ray can talk to others: it reads its certificate when it starts. A pod that
	// starts shortly before a renewal has two thirds of it.
	leafLifetime = 365 * 24 * time.Hour
	// authorityLifetime lets every certificate end before the CA does that signed it, see certs.Root.
	authorityLifetime = 3 * leafLifetime
	// maxAddresses bounds a certificate: Ray's TLS library refuses chains of more than 100 kB, and an address takes up to 41
	// bytes of it.
	maxAddresses = 2048
	// proxyAuthority is the common name of the CA that signs the certificate of one proxy, and is thrown away.
	proxyAuthority = "odh-platform-operator-raycluster-proxy-ca"
)

// Roles of certificates, as metrics and Events name them.
const (
	roleAuthority = "authority"
	roleHead      = "head"
	roleWorker    = "worker"
	roleProxy     = "proxy"
)

// leafPlan is one certificate for all pods of a role.
type leafPlan struct {
	role, secret string
	options      certs.LeafOptions
	// left counts the addresses for which there is no room.
	left int
}

// certificatePlan says which certificates a cluster should have.
type certificatePlan struct {
	cluster raycluster.Cluster
	issuer  raycluster.Issuer
	// manager is what signs for cert-manager.
	manager config.Issuer
	// authority is the name of the Secret of the CA; empty without mutual TLS.
	authority string
	root      certs.RootOptions
	// leaves are issued here or by cert-manager; there are none where the pods issue their own.
	leaves []leafPlan
	// proxy is the name of the Secret of the dashboard's proxy, where the platform issues no certificate for it.
	proxy   string
	serving certs.ServingOptions
}

// planCertificates decides from the cluster and what it depends on.
func planCertificates(c raycluster.Cluster, in Inputs) certificatePlan {
	p, m := certificatePlan{cluster: c, manager: in.CertManagerIssuer}, in.Mode
	if !m.Active() {
		return p
	}
	names := c.Names()
	algorithm := certs.Algorithm(in.CertificateKeyAlgorithm)
	if m.MTLS {
		p.issuer, p.authority = m.Issuer, names.CASecret
		if p.issuer == raycluster.IssuerCertManager && !in.CertManager {
			p.issuer = raycluster.IssuerOperator
		}
		p.root = certs.RootOptions{CommonName: authorityName, Lifetime: authorityLifetime, Algorithm: algorithm}
	}
	if m.MTLS && m.Issuer != raycluster.IssuerPod {
		p.leaves = append(p.leaves, planLeaf(roleHead, names.HeadTLS, algorithm, headNames(c, in), in.Pods))
		if c.Workers() > 0 {
			p.leaves = append(p.leaves, planLeaf(roleWorker, names.WorkerTLS, algorithm, commonNames(c, in), in.Pods))
		}
	}
	if m.Auth == raycluster.AuthProxy && !in.OpenShift {
		service := names.ProxyService + "." + c.Namespace() + ".svc"
		p.proxy = names.ProxyTLS
		p.serving = certs.ServingOptions{
			CACommonName: proxyAuthority, Lifetime: leafLifetime, Algorithm: algorithm,
			DNSNames: []string{service, service + "." + in.ClusterDomain, names.ProxyService, "localhost"},
		}
	}
	return p
}

// commonNames are those of every pod: the address of loopback as a name too, for clients that compare texts, and the head, whose
// name KubeRay gives to all.
func commonNames(c raycluster.Cluster, in Inputs) []string {
	return []string{"127.0.0.1", "localhost", c.HeadDNSName() + "." + in.ClusterDomain}
}

func headNames(c raycluster.Cluster, in Inputs) []string {
	out := append(commonNames(c, in), c.HeadDNSName(), c.Names().HeadService)
	if in.Domain != "" {
		out = append(out, c.ClientDNSName(in.Domain))
	}
	return out
}

// planLeaf collects the addresses of the pods of a role, the oldest pods first. IPv4 addresses are names too.
func planLeaf(role, secret string, algorithm certs.Algorithm, names []string, all []corev1.Pod) leafPlan {
	p := leafPlan{role: role, secret: secret, options: certs.LeafOptions{
		CommonName: "ray-" + role, DNSNames: names, Lifetime: leafLifetime, Algorithm: algorithm,
		Addresses: []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.IPv6Loopback()},
	}}
	for _, pod := range oldestFirst(podsOfRole(role, all)) {
		addresses := pods.Addresses(pod)
		if len(p.options.Addresses)+len(addresses) > maxAddresses {
			p.left += len(addresses)
			continue
		}
		p.options.Addresses = append(p.options.Addresses, addresses...)
		for _, a := range addresses {
			if a.Is4() {
				p.options.DNSNames = append(p.options.DNSNames, a.String())
			}
		}
	}
	return p
}

// podsOfRole returns the pods of a role that are not over. Only one that is gone for good may lose its address.
func podsOfRole(role string, all []corev1.Pod) []*corev1.Pod {
	var out []*corev1.Pod
	for i := range all {
		pod := &all[i]
		if !pods.IsOver(pod) && pods.IsHead(pod) == (role == roleHead) {
			out = append(out, pod)
		}
	}
	return out
}

func oldestFirst(all []*corev1.Pod) []*corev1.Pod {
	slices.SortFunc(all, func(a, b *corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// Wanted names the objects that belong to the certificates of a cluster, so that the others can be pruned.
func Wanted(c raycluster.Cluster, in Inputs) apply.Desired {
	p := planCertificates(c, in)
	out := p.requests()
	for _, name := range p.secrets() {
		out.Add(corev1ac.Secret(name, c.Namespace()))
	}
	return out
}

// Render returns the Secrets of certificates without their data, and the requests to cert-manager, for a new cluster. The names are those of
// the Secrets.
func Render(c raycluster.Cluster, in Inputs) (desired apply.Desired, secrets []string) {
	p := planCertificates(c, in)
	for _, name := range p.secrets() {
		if p.issuer == raycluster.IssuerCertManager && name != p.proxy {
			continue // cert-manager makes them
		}
		desired.Add(corev1ac.Secret(name, c.Namespace()).WithLabels(map[string]string{raycluster.LabelClusterName: c.Name()}))
		secrets = append(secrets, name)
	}
	return append(desired, p.requests()...), secrets
}

// requests are those to cert-manager, where it issues.
func (p certificatePlan) requests() apply.Desired {
	var out apply.Desired
	if p.issuer == raycluster.IssuerCertManager {
		for _, leaf := range p.leaves {
			out.Add(buildCertificate(p.cluster, leaf, p.manager))
		}
	}
	return out
}

// secrets are the names of all Secrets of a plan.
func (p certificatePlan) secrets() []string {
	var out []string
	for _, name := range []string{p.authority, p.proxy} {
		if name != "" {
			out = append(out, name)
		}
	}
	for _, leaf := range p.leaves {
		out = append(out, leaf.secret)
	}
	return out
}
