package resources

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// serviceAccounts returns the ServiceAccounts of the servers and CronJobs. Pods mount the token explicitly. A ServiceAccount of a user is used
// unchanged and never deleted.
func serviceAccounts(m *mlflowv1.MLflow, in Inputs) apply.Desired {
	var desired apply.Desired
	add := func(account, app string) {
		config := corev1ac.ServiceAccount(account, in.Namespace).
			WithLabels(Labels(app)).
			WithAnnotations(m.Spec.ServiceAccountAnnotations).
			WithAutomountServiceAccountToken(false)
		desired = append(desired, apply.Object{Config: config, IgnoreIfForeign: true})
	}
	add(serviceAccountName(m), NameOf(m)) // may equal gcServiceAccount or archivalServiceAccount
	if m.Spec.GarbageCollection != nil && serviceAccountName(m) != gcServiceAccount {
		add(gcServiceAccount, Suffixed(GCBaseName, m))
	}
	if Archives(m) && serviceAccountName(m) != archivalServiceAccount {
		add(archivalServiceAccount, Suffixed(ArchivalBaseName, m))
	}
	return desired
}

// sharedRBAC allows servers and archival to read workspaces, their artifact stores and archives, and Secrets of two names in all
// namespaces.
func sharedRBAC(m *mlflowv1.MLflow, in Inputs) apply.Desired {
	accounts := []string{serviceAccountName(m)}
	if Archives(m) {
		accounts = append(accounts, archivalServiceAccount)
	}
	if in.RunningAccount != "" {
		accounts = append(accounts, in.RunningAccount)
	}
	var subjects []*rbacv1ac.SubjectApplyConfiguration
	for i, account := range accounts {
		if !slices.Contains(accounts[:i], account) {
			subjects = append(subjects, accountSubject(account, in))
		}
	}
	return clusterRole(sharedRoleName, apply.Owned, subjects,
		readRule("", "namespaces"),
		readRule("", "secrets").WithResourceNames(artifactSecret, archiveSecret),
		readRule("mlflow.kubeflow.org", "mlflowconfigs"))
}

// garbageCollectionRBAC allows garbage collection to read all workspaces and their artifact stores, and to read and update experiments.
func garbageCollectionRBAC(m *mlflowv1.MLflow, in Inputs) apply.Desired {
	return clusterRole(Suffixed(GCBaseName, m), apply.Controlled, []*rbacv1ac.SubjectApplyConfiguration{accountSubject(gcServiceAccount, in)},
		rbacv1ac.PolicyRule().WithAPIGroups("mlflow.kubeflow.org").WithResources("experiments").WithVerbs("get", "list", "update"),
		readRule("", "namespaces"),
		readRule("", "secrets").WithResourceNames(artifactSecret),
		readRule("mlflow.kubeflow.org", "mlflowconfigs"))
}

// clusterRole returns a ClusterRole and the ClusterRoleBinding of the same name.
func clusterRole(name string, ownership apply.Ownership, subjects []*rbacv1ac.SubjectApplyConfiguration,
	rules ...*rbacv1ac.PolicyRuleApplyConfiguration,
) apply.Desired {
	role := rbacv1ac.ClusterRole(name).WithLabels(Labels(name)).WithRules(rules...)
	binding := rbacv1ac.ClusterRoleBinding(name).WithLabels(Labels(name)).
		WithRoleRef(rbacv1ac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("ClusterRole").WithName(name)).
		WithSubjects(subjects...)
	return apply.Desired{{Config: role, Ownership: ownership}, {Config: binding, Ownership: ownership}}
}

func accountSubject(name string, in Inputs) *rbacv1ac.SubjectApplyConfiguration {
	return rbacv1ac.Subject().WithKind(rbacv1.ServiceAccountKind).WithName(name).WithNamespace(in.Namespace)
}

func readRule(group, resource string) *rbacv1ac.PolicyRuleApplyConfiguration {
	return rbacv1ac.PolicyRule().WithAPIGroups(group).WithResources(resource).WithVerbs("get", "list", "watch")
}

type egressRule = networkingv1ac.NetworkPolicyEgressRuleApplyConfiguration

// networkPolicy allows ingress to the server port from spec.networkPolicyIngressFrom or else from all pods, because every request is
// authorized. By default it allows egress to DNS, HTTPS, the supported databases, common object stores and the ports of URIs in the spec.
func networkPolicy(m *mlflowv1.MLflow, in Inputs) *networkingv1ac.NetworkPolicyApplyConfiguration {
	ingress := resources.AllowTCP(port)
	ingress.From = resources.MustConvertEach[networkingv1ac.NetworkPolicyPeerApplyConfiguration](m.Spec.NetworkPolicyIngressFrom)
	if len(ingress.From) == 0 {
		ingress.WithFrom(
			networkingv1ac.NetworkPolicyPeer().WithPodSelector(metav1ac.LabelSelector()),
			networkingv1ac.NetworkPolicyPeer().WithNamespaceSelector(metav1ac.LabelSelector()))
	}
	pods := metav1ac.LabelSelector().
		WithMatchLabels(map[string]string{labelInstance: NameOf(m)}).
		WithMatchExpressions(metav1ac.LabelSelectorRequirement(). // migration pods have their own policy
										WithKey(LabelComponent).WithOperator(metav1.LabelSelectorOpNotIn).WithValues(migrationName))
	spec := policySpec(m, pods, nil, withURIPorts(append(storeURIs(m), envValues(m)...),
		dnsRule(),
		tcpRule(443, 6443, 8443),
		tcpRule(5432),
		tcpRule(3306),
		tcpRule(9000, 8333, 8334),
	))
	return networkingv1ac.NetworkPolicy(NameOf(m), in.Namespace).WithLabels(Labels(NameOf(m))).WithSpec(spec.WithIngress(ingress))
}

// migrationPolicy allows migration pods egress to DNS and databases. spec.networkPolicyEgressRules replaces the database ports.
func migrationPolicy(m *mlflowv1.MLflow, in Inputs) *networkingv1ac.NetworkPolicyApplyConfiguration {
	labels := map[string]string{LabelComponent: migrationName}
	spec := policySpec(m, metav1ac.LabelSelector().WithMatchLabels(labels), []*egressRule{dnsRule()}, withURIPorts(storeURIs(m), tcpRule(5432, 3306)))
	return networkingv1ac.NetworkPolicy(NameOf(m)+"-migration", in.Namespace).WithLabels(labels).WithSpec(spec)
}

// policySpec denies all ingress, and allows the egress of required, of the spec's rules or else defaults, and of the spec's additional rules.
func policySpec(m *mlflowv1.MLflow, pods *metav1ac.LabelSelectorApplyConfiguration, required, defaults []*egressRule,
) *networkingv1ac.NetworkPolicySpecApplyConfiguration {
	if rules := userRules(m.Spec.NetworkPolicyEgressRules); len(rules) > 0 {
		defaults = rules
	}
	return networkingv1ac.NetworkPolicySpec().
		WithPodSelector(pods).
		WithPolicyTypes(networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress).
		WithEgress(required...).WithEgress(defaults...).WithEgress(userRules(m.Spec.NetworkPolicyAdditionalEgressRules)...)
}

func dnsRule() *egressRule {
	rule := networkingv1ac.NetworkPolicyEgressRule()
	for _, number := range []int32{53, 5353} {
		rule.Ports = slices.Concat(rule.Ports, resources.AllowEgress(corev1.ProtocolUDP, number).Ports, tcpRule(number).Ports)
	}
	return rule
}

func tcpRule(ports ...int32) *egressRule {
	return resources.AllowEgress(corev1.ProtocolTCP, ports...)
}

// withURIPorts adds a rule for those ports in URIs that the rules do not allow.
func withURIPorts(uris []string, rules ...*egressRule) []*egressRule {
	var ports, allowed []int32
	for _, uri := range uris {
		ports = append(ports, portsOf(uri)...)
	}
	for _, rule := range rules {
		for _, port := range rule.Ports {
			allowed = append(allowed, port.Port.IntVal)
		}
	}
	slices.Sort(ports)
	ports = slices.DeleteFunc(slices.Compact(ports), func(port int32) bool { return slices.Contains(allowed, port) })
	if len(ports) == 0 {
		return rules
	}
	return append(rules, tcpRule(ports...))
}

// storeURIs returns the URIs of stores in the spec, and a URI with PGPORT, the default port of PostgreSQL clients. URIs in Secrets are unknown.
func storeURIs(m *mlflowv1.MLflow) (uris []string) {
	for _, s := range Stores(m) {
		uris = append(uris, s.URI)
	}
	for _, v := range m.Spec.Env {
		if v.Name == "PGPORT" {
			uris = append(uris, "postgresql://:"+v.Value)
		}
	}
	return uris
}

// envValues returns the values in spec.env, which may be endpoints of object stores, collectors or proxies.
func envValues(m *mlflowv1.MLflow) (values []string) {
	for _, v := range m.Spec.Env {
		values = append(values, v.Value)
	}
	return values
}

var (
	authority  = regexp.MustCompile(`^[^:/?#]+://(?:[^/?#]*@)?([^/?#@]*)`)
	portOfHost = regexp.MustCompile(`:([0-9]{1,5})(?:,|$)`)
	portOfDSN  = regexp.MustCompile(`[?&](?:port=|host=[^&]*(?::|%3[aA]))([0-9]{1,5})\b`)
)

// portsOf returns the ports in the authority of a URI, which may have several hosts, and in the query parameters port and host of database
// drivers. The default for http is 80.
func portsOf(uri string) (ports []int32) {
	found := authority.FindStringSubmatch(uri)
	if found == nil {
		return nil
	}
	numbers := append(portOfHost.FindAllStringSubmatch(found[1], -1), portOfDSN.FindAllStringSubmatch(uri, -1)...)
	if len(numbers) == 0 && strings.HasPrefix(strings.ToLower(uri), "http://") {
		return []int32{80}
	}
	for _, n := range numbers {
		if port, err := strconv.ParseUint(n[1], 10, 16); err == nil && port > 0 {
			ports = append(ports, int32(port))
		}
	}
	return ports
}

// userRules converts rules of the spec. It sets the default protocol as the API server does: the atomic list of ports would otherwise always
// differ from the stored one.
func userRules(from []networkingv1.NetworkPolicyEgressRule) []*egressRule {
	rules := make([]*egressRule, 0, len(from))
	for i := range from {
		rule := resources.MustConvert[egressRule](&from[i])
		for p := range rule.Ports {
			if rule.Ports[p].Protocol == nil {
				rule.Ports[p].WithProtocol(corev1.ProtocolTCP)
			}
		}
		rules = append(rules, rule)
	}
	return rules
}
