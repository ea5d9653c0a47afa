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
	// authorityName is the common name of the CA of a RayCluster. Clients issue certificates with this issuer.
	authorityName = "root-ca"
	// leafLifetime is the lifetime of a certificate. It limits how long a Ray process can run, because Ray reads certificates only at start: a
	// pod that starts shortly before a renewal can run for two thirds of this time.
	leafLifetime = 365 * 24 * time.Hour
	// authorityLifetime exceeds the lifetime of all certificates that the CA signs, see certs.Root.
	authorityLifetime = 3 * leafLifetime
	// maxAddresses limits the size of a certificate: Ray's TLS library rejects chains of more than 100 kB. An IPv6 address takes 18 bytes,
	// and an IPv4 address, which is also added as a DNS name, up to 23 bytes.
	maxAddresses = 2048
	// proxyAuthority is the common name of the CA that signs one proxy certificate. The key of that CA is discarded.
	proxyAuthority = "odh-platform-operator-raycluster-proxy-ca"
)

// Roles of certificates, as metrics and Events name them.
const (
	roleAuthority = "authority"
	roleHead      = "head"
	roleWorker    = "worker"
	roleProxy     = "proxy"
)

// leafPlan is the certificate of all pods of a role, or of the proxy.
type leafPlan struct {
	role, secret string
	options      certs.LeafOptions
	// excludedAddresses is the number of addresses beyond maxAddresses.
	excludedAddresses int
}

// certificatePlan holds the desired certificates of a RayCluster.
type certificatePlan struct {
	cluster raycluster.Cluster
	issuer  raycluster.Issuer
	// certManagerIssuer is the issuer in Certificates of cert-manager.
	certManagerIssuer config.Issuer
	// authoritySecret is the name of the CA Secret; "" without mutual TLS.
	authoritySecret string
	root            certs.RootOptions
	// leaves are issued by the operator or cert-manager; none with IssuerPod.
	leaves []leafPlan
	// proxySecret is the name of the Secret of the dashboard's proxy; "" unless the operator issues the certificate.
	proxySecret string
	serving     certs.ServingOptions
	// publishesAuthority reports whether the CA of the proxy is published.
	publishesAuthority bool
}

func planCertificates(c raycluster.Cluster, in Inputs) certificatePlan {
	p, mode := certificatePlan{cluster: c, certManagerIssuer: in.CertManagerIssuer}, in.Mode
	if !mode.Active() {
		return p
	}
	names := c.Names()
	algorithm := certs.Algorithm(in.CertificateKeyAlgorithm)
	if mode.MTLS {
		p.issuer, p.authoritySecret = mode.Issuer, names.CASecret
		if p.issuer == raycluster.IssuerCertManager && !in.CertManager {
			p.issuer = raycluster.IssuerOperator
		}
		p.root = certs.RootOptions{CommonName: authorityName, Lifetime: authorityLifetime, Algorithm: algorithm}
	}
	if mode.MTLS && mode.Issuer != raycluster.IssuerPod {
		p.leaves = append(p.leaves, planLeaf(roleHead, names.HeadTLS, algorithm, headNames(c, in), in.Pods))
		if c.WorkerGroupCount() > 0 {
			p.leaves = append(p.leaves, planLeaf(roleWorker, names.WorkerTLS, algorithm, commonNames(c, in), in.Pods))
		}
	}
	if mode.Auth == raycluster.AuthProxy && !in.OpenShift {
		service := names.ProxyService + "." + c.Namespace() + ".svc"
		p.proxySecret, p.publishesAuthority = names.ProxyTLS, in.PublishesAuthority
		p.serving = certs.ServingOptions{
			CACommonName: proxyAuthority, Lifetime: leafLifetime, Algorithm: algorithm,
			DNSNames: []string{service, service + "." + in.ClusterDomain, names.ProxyService, "localhost"},
		}
	}
	return p
}

// commonNames returns the DNS names in the certificates of all pods: the head Service, localhost, and the loopback address for clients that
// compare strings.
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

// planLeaf returns the certificate with the addresses of the pods of a role, oldest pods first. IPv4 addresses are added as DNS names too.
func planLeaf(role, secret string, algorithm certs.Algorithm, names []string, all []corev1.Pod) leafPlan {
	p := leafPlan{role: role, secret: secret, options: certs.LeafOptions{
		CommonName: "ray-" + role, DNSNames: names, Lifetime: leafLifetime, Algorithm: algorithm,
		Addresses: []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.IPv6Loopback()},
	}}
	ofRole := podsOfRole(role, all)
	slices.SortFunc(ofRole, func(a, b *corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for _, pod := range ofRole {
		addresses := pods.Addresses(pod)
		if len(p.options.Addresses)+len(addresses) > maxAddresses {
			p.excludedAddresses += len(addresses)
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

// podsOfRole returns the pods of a role that have not finished, because they may still use their addresses.
func podsOfRole(role string, all []corev1.Pod) []*corev1.Pod {
	var out []*corev1.Pod
	for i := range all {
		pod := &all[i]
		if !pods.IsFinished(pod) && pods.IsHead(pod) == (role == roleHead) {
			out = append(out, pod)
		}
	}
	return out
}

// Desired returns the objects that belong to the certificates of a RayCluster. They must not be pruned.
func Desired(c raycluster.Cluster, in Inputs) apply.Desired {
	p := planCertificates(c, in)
	out := p.certificates()
	for _, name := range p.secretNames() {
		out.Add(corev1ac.Secret(name, c.Namespace()))
	}
	return out
}

// Render returns the Secrets without data and the Certificates of a new cluster, and the names of the Secrets.
func Render(c raycluster.Cluster, in Inputs) (desired apply.Desired, secrets []string) {
	p := planCertificates(c, in)
	for _, name := range p.secretNames() {
		if p.issuer == raycluster.IssuerCertManager && name != p.proxySecret {
			continue // created when cert-manager has issued the certificates
		}
		desired.Add(corev1ac.Secret(name, c.Namespace()).WithLabels(map[string]string{raycluster.LabelClusterName: c.Name()}))
		secrets = append(secrets, name)
	}
	return append(desired, p.certificates()...), secrets
}

// certificates returns the Certificates for cert-manager.
func (p certificatePlan) certificates() apply.Desired {
	var out apply.Desired
	if p.issuer == raycluster.IssuerCertManager {
		for _, leaf := range p.leaves {
			out.Add(buildCertificate(p.cluster, leaf, p.certManagerIssuer))
		}
	}
	return out
}

// secretNames returns the names of all Secrets of a plan.
func (p certificatePlan) secretNames() []string {
	var out []string
	for _, name := range []string{p.authoritySecret, p.proxySecret} {
		if name != "" {
			out = append(out, name)
		}
	}
	for _, leaf := range p.leaves {
		out = append(out, leaf.secret)
	}
	return out
}
