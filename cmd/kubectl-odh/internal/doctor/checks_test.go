package doctor

import (
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/installed"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/served"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/status/health"
)

func TestAHealthyInstallation(t *testing.T) {
	for name, change := range map[string]func(*Facts){"plain": func(*Facts) {}, "openshift": onOpenShift} {
		f := healthy(t)
		change(f)
		if name == "openshift" {
			f.Manager.Settings.Config.ModelRegistry.Gateway.Domain = "apps.example.org"
		}
		seen := map[string]bool{}
		for _, finding := range judge(f, ships(t)) {
			seen[finding.Check] = true
			if finding.Result != OK || finding.Found == "" {
				t.Errorf("%s: %+v", name, finding)
			}
			if finding.Why != "" || finding.Cure != "" {
				t.Errorf("%s: what is ok needs neither reason nor cure: %+v", name, finding)
			}
		}
		for _, c := range checks {
			if !seen[c.name] {
				t.Errorf("%s: check %s says nothing", name, c.name)
			}
		}
	}
}

// fault is one thing that is wrong, and what has to be said of it.
type fault struct {
	change      func(*testing.T, *Facts)
	check       string
	result      Result
	found, cure string
}

// Each fault alone is found by its check, and by no other.
func TestFaults(t *testing.T) {
	for group, faults := range map[string]map[string]fault{
		"cluster": clusterFaults(), "manager": managerFaults(), "originals": originalFaults(), "crds": crdFaults(), "rights": rightsFaults(),
		"webhooks": webhookFaults(), "resources": resourceFaults(),
	} {
		for name, tc := range faults {
			t.Run(group+"/"+name, func(t *testing.T) {
				f := healthy(t)
				tc.change(t, f)
				all := judge(f, ships(t))
				found := of(all, tc.check)
				i := slices.IndexFunc(found, func(x Finding) bool { return strings.Contains(x.Subject+": "+x.Found, tc.found) })
				if i < 0 {
					t.Fatalf("nothing says %q: %+v", tc.found, found)
				}
				x := found[i]
				if x.Result != tc.result || !strings.Contains(x.Cure, tc.cure) || x.Why == "" && x.Result != Unknown || x.Cure == "" {
					t.Errorf("%+v, want %s, cure %q", x, tc.result, tc.cure)
				}
				for _, other := range all {
					follows := other.Result == Unknown && !f.Manager.Settings.Known // of settings that are not known
					if other.Result != OK && other.Check != tc.check && !follows {
						t.Errorf("check %s complains too: %+v", other.Check, other)
					}
				}
			})
		}
	}
}

func change(c func(*Facts)) func(*testing.T, *Facts) { return func(_ *testing.T, f *Facts) { c(f) } }

func configured(args ...string) func(*testing.T, *Facts) {
	return func(t *testing.T, f *Facts) { f.Manager.Settings.Config = settings(t, args...) }
}

func without(gvk schema.GroupVersionKind, more ...schema.GroupVersionKind) func(*testing.T, *Facts) {
	return change(func(f *Facts) {
		kinds := slices.DeleteFunc(everything(), func(k served.Kind) bool { return k.GroupVersionKind == gvk })
		for _, k := range more {
			kinds = append(kinds, kind(k))
		}
		f.Served = served.New(kinds...)
	})
}

func clusterFaults() map[string]fault {
	old := func(gvk schema.GroupVersionKind) schema.GroupVersionKind {
		return gvk.GroupKind().WithVersion("v1alpha0")
	}
	return map[string]fault{
		"old server":          {change(func(f *Facts) { f.Server = "v1.29.4+abc" }), "server", Fail, "older than 1.30", "upgrade"},
		"odd server":          {change(func(f *Facts) { f.Server = "" }), "server", Unknown, `says of its version ""`, "kubectl version"},
		"an API that is away": {change(func(f *Facts) { f.Served.Failed = []string{"metrics.k8s.io/v1beta1"} }), "server", Warn, "does not answer", "apiservices"},
		"half installed":      {without(capability.HTTPRoute, old(capability.HTTPRoute)), "capabilities", Warn, "served as v1alpha0 and not as v1", "install a release"},
		"no KubeRay":          {without(capability.RayCluster), "capabilities", Warn, "component raycluster: on, and rests", "KubeRay"},
		"no Kueue":            {without(capability.KueueWorkload), "capabilities", Warn, "Kueue: not there", "Kueue"},
		"no service CA":       {change(func(f *Facts) { onOpenShift(f); gateway(f); f.ServiceCA = new(false) }), "platform", Fail, "service-ca: not available", "clusteroperator"},
		"half OpenShift": {change(func(f *Facts) {
			onOpenShift(f)
			gateway(f)
			f.Served = served.New(append(everything(), kind(capability.OpenShiftIngress))...)
		}), "platform", Warn, "SecurityContextConstraints.security.openshift.io: not served", "apiservices"},
	}
}

func gateway(f *Facts) { f.Manager.Settings.Config.ModelRegistry.Gateway.Domain = "apps.example.org" }

func managerFaults() map[string]fault {
	state := func(s health.State, message string) func(*testing.T, *Facts) {
		return change(func(f *Facts) { f.Manager.Health = health.Verdict{State: s, Message: message} })
	}
	return map[string]fault{
		"gone": {change(gone), "manager", Fail, "not there in any namespace", "kubectl apply -k"},
		"not to seen": {change(func(f *Facts) {
			gone(f)
			f.gaps[topicManager] = []Gap{{What: "the manager", Reason: "not allowed to read: Deployment"}}
		}), "manager", Unknown, "the manager: could not be read: not allowed", ""},
		"scaled down": {state(health.Idle, ""), "manager", Fail, "scaled to zero", "kubectl -n opendatahub scale deployment odh-platform-operator-controller-manager --replicas=1"},
		"starting":    {state(health.Progressing, "0 of 1"), "manager", Warn, "not available yet: 0 of 1", "get pods"},
		"broken":      {state(health.Failed, "no image"), "manager", Fail, "not available: no image", "describe pods"},
		"leaderless":  {change(func(f *Facts) { f.Manager.Lease = nil }), "manager", Warn, "no replica leads", "logs"},
		"lost lease":  {change(func(f *Facts) { f.Manager.Lease.Expires = noon.Add(-time.Second) }), "manager", Warn, "no replica leads", "logs"},
		"two":         {change(func(f *Facts) { f.Manager.Others = []string{"other"} }), "replicas", Fail, "Deployment other/odh-platform-operator-controller-manager: a second manager", "kubectl -n other delete deployment"},
		"skew":        {change(func(f *Facts) { f.Manager.Version = "1.4.0@abcdef" }), "version", Warn, "this program is 1.2.3, the manager 1.4.0", "release 1.4.0"},
		"bad settings": {change(func(f *Facts) {
			f.Manager.Settings = installed.Settings{Problem: "--leader-elect=2: must be true or false"}
		}), "settings", Fail, "--leader-elect=2", "docs/configuration.md"},
		"no image":  {change(func(f *Facts) { f.Manager.Settings.Config.MLflow.Image = "" }), "settings", Fail, "mlflow has no default image", ""},
		"older key": {change(func(f *Facts) { f.Manager.Settings.Config.Notices = []string{"ENABLE_PPROF has no effect"} }), "settings", Warn, "ENABLE_PPROF", "remove"},
		"no URL":    {change(func(f *Facts) { f.Manager.Settings.Config.MLflow.ExternalURL = "" }), "settings", Warn, "mlflow-url: no external address", "deploy-to-platform"},
		"no domain": {func(t *testing.T, f *Facts) {
			onOpenShift(f)
			f.Manager.Settings.Config = settings(t, "--enable-platform=false")
		}, "settings", Warn, "GATEWAY_DOMAIN: empty", "params.env"},
	}
}

func gone(f *Facts) {
	*f = Facts{Now: noon, Server: f.Server, Served: f.Served, CRDs: f.CRDs, Services: f.Services, gaps: f.gaps}
}

// Version and settings are not compared where there is nothing to compare.
func TestWhatCannotBeCompared(t *testing.T) {
	for _, v := range []string{"", "latest", "sha256:0123456789ab", "dev"} {
		f := healthy(t)
		f.Manager.Version = v
		if found := checkVersion(f, Shipped{}); len(found) != 1 || found[0].Result != OK {
			t.Errorf("%q: %+v", v, found)
		}
	}
	f := healthy(t)
	f.Manager.Settings.Config = config.Config{}
	if found := of(judge(f, ships(t)), "settings"); len(found) != 1 || !strings.Contains(found[0].Found, "no component is on") {
		t.Errorf("nothing is on: %+v", found)
	}
}

func originalFaults() map[string]fault {
	found := func(deployment string, present bool, replicas int32, leads bool) func(*testing.T, *Facts) {
		return change(func(f *Facts) {
			i := slices.IndexFunc(originals, func(o Original) bool { return o.Deployment == deployment })
			f.Originals = []Running{{Original: originals[i], Namespace: "old", Present: present, Replicas: replicas, Leads: leads, Holder: "pod_1"}}
		})
	}
	faults := map[string]fault{
		"a Lease alone": {found("catalog-controller-manager", false, 0, true), "originals", Fail, "Lease old/catalog.opendatahub.io: held by pod_1", "stop"},
		"still leading": {found("mlflow-operator-controller-manager", true, 0, true), "originals", Fail, "runs beside this one", "--replicas=0"},
	}
	for _, o := range originals {
		faults[o.Deployment] = fault{found(o.Deployment, true, 1, false), "originals", Fail,
			"Deployment old/" + o.Deployment + ": a former operator that does the work of " + strings.Join(o.Components, ", "), "kubectl -n old scale deployment " + o.Deployment + " --replicas=0"}
	}
	return faults
}

func TestOriginalsThatDoNoHarm(t *testing.T) {
	f := healthy(t)
	f.Originals = []Running{{Original: originals[0], Namespace: "old", Present: true}}
	if found := checkOriginals(f, Shipped{}); len(found) != 1 || found[0].Result != OK || !strings.Contains(found[0].Found, "scaled to zero") {
		t.Errorf("%+v", found)
	}
	f.Originals = []Running{{Original: originals[6], Namespace: "old", Present: true, Replicas: 1}}
	f.Manager.Settings.Config = settings(t, "--enable-raycluster=false", "--enable-appwrapper=false")
	if found := checkOriginals(f, Shipped{}); len(found) != 1 || found[0].Result != OK || !strings.Contains(found[0].Found, "is off") {
		t.Errorf("its component is off: %+v", found)
	}
}

func crdFaults() map[string]fault {
	const name, converted = "mlflows.mlflow.opendatahub.io", "modelregistries.modelregistry.opendatahub.io"
	on := func(name string, c func(*apiextensionsv1.CustomResourceDefinition)) func(*testing.T, *Facts) {
		return change(func(f *Facts) { c(f.CRDs[name]) })
	}
	condition := func(kind apiextensionsv1.CustomResourceDefinitionConditionType, status apiextensionsv1.ConditionStatus) func(*testing.T, *Facts) {
		return on(name, func(c *apiextensionsv1.CustomResourceDefinition) {
			c.Status.Conditions = append(c.Status.Conditions, apiextensionsv1.CustomResourceDefinitionCondition{Type: kind, Status: status, Message: "why"})
		})
	}
	return map[string]fault{
		"missing":         {change(func(f *Facts) { delete(f.CRDs, name) }), "crds", Fail, "CRD " + name + ": not there", "make install"},
		"not established": {on(name, func(c *apiextensionsv1.CustomResourceDefinition) { c.Status.Conditions = nil }), "crds", Fail, "not established", "describe crd " + name},
		"refused names":   {condition(apiextensionsv1.NamesAccepted, apiextensionsv1.ConditionFalse), "crds", Fail, "its names are refused: why", "describe crd"},
		"odd schema":      {condition(apiextensionsv1.NonStructuralSchema, apiextensionsv1.ConditionTrue), "crds", Fail, "not structural: why", "describe crd"},
		"older": {on(name, func(c *apiextensionsv1.CustomResourceDefinition) {
			delete(c.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties, "replicas")
		}), "crds", Warn, "differs from the one of this release", "kubectl apply --server-side"},
		"a version less": {on(converted, func(c *apiextensionsv1.CustomResourceDefinition) {
			c.Spec.Versions = slices.DeleteFunc(c.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Storage })
		}), "crds", Fail, "not served: v1beta1", "make install"},
		"stored as older": {on(converted, func(c *apiextensionsv1.CustomResourceDefinition) {
			c.Status.StoredVersions = []string{"v1alpha1", "v1beta1"}
		}), "crds", Warn, "objects may still be stored as v1alpha1", "STORAGE_MIGRATION"},
		"conversion nowhere": {on(converted, func(c *apiextensionsv1.CustomResourceDefinition) {
			c.Spec.Conversion.Webhook.ClientConfig.Service.Name = "gone"
		}), "crds", Fail, "its conversion leads to Service opendatahub/gone, which is not there", "make install"},
		"conversion without CA": {on(converted, func(c *apiextensionsv1.CustomResourceDefinition) {
			c.Spec.Conversion.Webhook.ClientConfig.CABundle = nil
		}), "crds", Fail, "has no caBundle", "rollout restart"},
		"may not be read": {change(func(f *Facts) {
			f.gaps[topicCRDs] = []Gap{{What: "customresourcedefinitions.apiextensions.k8s.io " + name, Right: "get customresourcedefinitions.apiextensions.k8s.io " + name}}
			delete(f.CRDs, name)
		}), "crds", Unknown, "may not be read", "the right to get customresourcedefinitions"},
	}
}

// What one right would let somebody read is told once, with all names, in an order that does not vary.
func TestGapsAreJoined(t *testing.T) {
	role := func(name string) Gap {
		return Gap{What: "clusterroles " + name, Right: "get clusterroles " + name, Of: "get clusterroles", Name: name}
	}
	secret := Gap{What: "secrets s", Right: "get secrets s in namespace n", Of: "get secrets in namespace n", Name: "s"}
	list, broken := Gap{What: "pods", Right: "list pods"}, Gap{What: "nodes", Reason: "no answer"}
	f := healthy(t)
	for _, order := range [][]Gap{{role("b"), secret, list, role("a"), broken, role("c")}, {broken, role("c"), role("b"), list, role("a"), secret}} {
		f.gaps[topicRights] = order
		want := []Finding{
			{Result: Unknown, Subject: "nodes", Found: "could not be read: no answer", Cure: "try again; kubectl get --raw /readyz?verbose tells how the API server is"},
			{Result: Unknown, Subject: "pods", Found: "may not be read", Cure: "ask an administrator for the right to list pods"},
			{Result: Unknown, Subject: "clusterroles a, b, c", Found: "may not be read", Cure: "ask an administrator for the right to get clusterroles"},
			{Result: Unknown, Subject: "secrets s", Found: "may not be read", Cure: "ask an administrator for the right to get secrets s in namespace n"},
		}
		if got := f.unreadable(topicRights); !slices.Equal(got, want) {
			t.Errorf("%+v", got)
		}
	}
}

// A CRD that is missing is no fault while the component that looks after its kind is known to be off.
func TestCRDsThatNobodyNeeds(t *testing.T) {
	names := map[string]string{
		"aihubs.components.platform.opendatahub.io": "platform", "mlflows.mlflow.opendatahub.io": "mlflow",
		"modelregistries.modelregistry.opendatahub.io": "modelregistry", "appwrappers.workload.codeflare.dev": "appwrapper",
		"predictors.serving.kserve.io": "modelmesh",
	}
	for name, component := range names {
		off := healthy(t)
		off.Manager.Settings.Config = settings(t, "--enable-"+component+"=false")
		delete(off.CRDs, name)
		if found := judgeCRD(off, ships(t), name); len(found) != 1 || found[0] != fine("CRD "+name, "not needed: component "+component+" is off") {
			t.Errorf("%s: %+v", name, found)
		}
		another, unknown := healthy(t), healthy(t)
		another.Manager.Settings.Config = settings(t, "--enable-raycluster=false")
		unknown.Manager.Settings.Known = false
		for _, f := range []*Facts{another, unknown} {
			delete(f.CRDs, name)
			if found := judgeCRD(f, ships(t), name); len(found) != 1 || found[0].Result != Fail || found[0].Found != "not there" {
				t.Errorf("%s is needed, or may be: %+v", name, found)
			}
		}
	}
}

func rightsFaults() map[string]fault {
	drop := func(verb, resource string) func(*testing.T, *Facts) {
		return change(func(f *Facts) {
			for i := range f.Granted.Everywhere {
				r := &f.Granted.Everywhere[i]
				if slices.Contains(r.Resources, resource) {
					r.Verbs = slices.DeleteFunc(slices.Clone(r.Verbs), func(v string) bool { return v == verb })
				}
			}
		})
	}
	return map[string]fault{
		"a verb less": {drop("watch", "rayclusters"), "rights", Fail, "role odh-platform-operator-raycluster: account odh-platform-operator-controller-manager may not watch rayclusters.ray.io", "of component raycluster"},
		"no binding":  {change(func(f *Facts) { f.Granted = Granted{} }), "rights", Fail, "more", "kubectl apply -k"},
		"no Leases": {change(func(f *Facts) { f.Granted.Inside = nil }), "rights", Fail,
			"leases.coordination.k8s.io", "of component manager"},
		"may not be read": {change(func(f *Facts) {
			f.gaps[topicRights] = []Gap{{What: "clusterrolebindings.rbac.authorization.k8s.io", Right: "list clusterrolebindings.rbac.authorization.k8s.io"}}
		}), "rights", Unknown, "may not be read", "the right to list clusterrolebindings"},
		"no user roles": {change(func(f *Facts) { f.UserRoles["modelregistry-viewer-role"] = false }), "userroles", Warn, "ClusterRole modelregistry-viewer-role: not there", "config/rbac/modelregistry/user_roles.yaml"},
	}
}

// Roles that stand beside resources may be bound in the namespaces of those only.
func TestNarrowedRoles(t *testing.T) {
	f := healthy(t)
	var beside []rbacv1.PolicyRule
	f.Granted.Everywhere = nil
	for _, role := range ships(t).Roles {
		if role.Component == "modelregistry" && role.Narrowed && strings.HasSuffix(role.Name, "-beside") {
			beside = append(beside, role.Rules...)
			continue
		}
		f.Granted.Everywhere = append(f.Granted.Everywhere, role.Rules...)
	}
	f.Granted.Inside["registries"] = beside
	if found := of(judge(f, ships(t)), "rights"); len(found) > 0 {
		t.Errorf("%+v", found)
	}
	delete(f.Granted.Inside, "registries")
	if found := of(judge(f, ships(t)), "rights"); len(found) == 0 {
		t.Error("nothing is missing without the binding")
	}
}

func webhookFaults() map[string]fault {
	first := func(c func(*Webhook)) func(*testing.T, *Facts) { return change(func(f *Facts) { c(&f.Webhooks[0]) }) }
	stranger := func(policy admissionregistrationv1.FailurePolicyType) func(*testing.T, *Facts) {
		return change(func(f *Facts) {
			f.Webhooks = append(f.Webhooks, Webhook{Kind: "ValidatingWebhookConfiguration", Configuration: "left-behind", Name: "w", Policy: policy,
				Service: &admissionregistrationv1.ServiceReference{Namespace: "old", Name: "codeflare-operator-webhook-service"}})
		})
	}
	return map[string]fault{
		"left behind":       {stranger(admissionregistrationv1.Fail), "webhooks", Fail, "leads to Service old/codeflare-operator-webhook-service, which is not there", "kubectl delete validatingwebhookconfiguration left-behind"},
		"left, but ignored": {stranger(admissionregistrationv1.Ignore), "webhooks", Warn, "which is not there", "kubectl delete validatingwebhookconfiguration left-behind"},
		"led elsewhere":     {first(func(w *Webhook) { w.Service.Name = "codeflare-operator-webhook-service" }), "webhooks", Fail, "codeflare-operator-webhook-service, which is not there", "which leads it to the manager"},
		"no CA":             {first(func(w *Webhook) { w.CABundle = nil }), "webhooks", Fail, "has no caBundle", "rollout restart"},
		"damaged CA":        {first(func(w *Webhook) { w.CABundle = []byte("x") }), "webhooks", Fail, "holds no certificate", "rollout restart"},
		"another CA": {func(t *testing.T, f *Facts) {
			f.Webhooks[0].CABundle = authority(t, noon).Data[corev1.ServiceAccountRootCAKey]
		}, "webhooks", Fail, "does not verify", "rollout restart"},
		"ignored": {first(func(w *Webhook) { w.Policy = admissionregistrationv1.Ignore }), "webhooks", Warn, "has failurePolicy Ignore", "kubectl apply -k"},
		"missing": {change(func(f *Facts) { f.Webhooks = f.Webhooks[1:] }), "webhooks", Fail, "not there, and the component appwrapper is on", "kubectl apply -k"},
		"expired": {func(t *testing.T, f *Facts) { dated(t, f, noon.AddDate(-11, 0, 0)) }, "certificate", Fail, "expired on", "delete secret"},
		"empty": {change(func(f *Facts) {
			f.Certificate.Data[corev1.TLSCertKey] = nil
		}), "certificate", Fail, "holds no certificate", "delete secret"},
		"of another namespace": {func(_ *testing.T, f *Facts) {
			// The names of the certificate are those of opendatahub.
			f.Manager.Deployment.Namespace = "elsewhere"
			f.Granted.Inside["elsewhere"] = f.Granted.Inside["opendatahub"]
		}, "certificate", Fail, "is not valid for odh-platform-operator-webhook.elsewhere.svc", "delete secret"},
		"nowhere": {change(func(f *Facts) { f.Certificate = nil }), "certificate", Warn, "not there", "logs"},
		"may not be read": {change(func(f *Facts) {
			f.gaps[topicSecret] = []Gap{{What: "secrets odh-platform-operator-webhook-cert", Right: "get secrets odh-platform-operator-webhook-cert in namespace opendatahub"}}
		}), "certificate", Unknown, "may not be read", "in namespace opendatahub"},
	}
}

// dated gives the manager a certificate that was issued at a moment, which everybody trusts.
func dated(t *testing.T, f *Facts, at time.Time) {
	t.Helper()
	f.Certificate = authority(t, at)
	f.Webhooks, f.CRDs["modelregistries.modelregistry.opendatahub.io"].Spec.Conversion = nil, nil
	f.Manager.Settings.Config, f.MeshNamespaces = settings(t, "--components=platform"), nil
}

// Behind the one Service are the webhooks of all components, so all of them tell of it.
func TestNobodyBehindTheService(t *testing.T) {
	f := healthy(t)
	f.Services[types.NamespacedName{Namespace: "opendatahub", Name: webhookService}] = 0
	found := of(judge(f, ships(t)), "webhooks")
	if len(found) != len(f.Webhooks) {
		t.Errorf("%d of %d webhooks: %+v", len(found), len(f.Webhooks), found)
	}
	if found := of(judge(f, ships(t)), "crds"); len(found) != 1 || !strings.Contains(found[0].Found, "behind which no pod is ready") {
		t.Errorf("the conversion: %+v", found)
	}
	f.Services[types.NamespacedName{Namespace: "opendatahub", Name: webhookService}] = -1 // not known
	if found := of(judge(f, ships(t)), "webhooks"); len(found) != 0 {
		t.Errorf("it is not known who is behind: %+v", found)
	}
}

func TestMountedCertificates(t *testing.T) {
	f := healthy(t)
	f.Certificate = nil
	f.Manager.Settings.Config = settings(t, "--webhook-cert-mode=mounted")
	if found := of(judge(f, ships(t)), "certificate"); len(found) != 0 {
		t.Errorf("%+v", found)
	}
}

// OLM makes one configuration of each webhook, with a name of its own, puts a Service of its own before them, and mounts a certificate.
func byOLM(t *testing.T) *Facts {
	t.Helper()
	f, s := healthy(t), ships(t)
	service := types.NamespacedName{Namespace: "opendatahub", Name: installed.DeploymentName + "-service"}
	f.Services = map[types.NamespacedName]int{service: 1}
	f.Certificate, f.Webhooks = nil, nil
	f.CRDs["modelregistries.modelregistry.opendatahub.io"].Spec.Conversion = nil
	for _, name := range sortedKeys(s.Calls) {
		for _, call := range s.Calls[name] {
			kind, path, _ := strings.Cut(call, " ")
			f.Webhooks = append(f.Webhooks, Webhook{Kind: kind, Configuration: "made-by-olm-" + path[1:], Name: "w", Policy: admissionregistrationv1.Fail,
				Service: &admissionregistrationv1.ServiceReference{Namespace: service.Namespace, Name: service.Name, Path: &path}})
		}
	}
	f.Manager.Deployment.Spec.Template.Spec.Containers = []corev1.Container{{
		Name: "manager", VolumeMounts: []corev1.VolumeMount{{Name: "webhook-cert", MountPath: "/tmp/k8s-webhook-server/serving-certs"}},
	}}
	return f
}

func TestInstalledByOLM(t *testing.T) {
	f := byOLM(t)
	if len(f.Webhooks) < len(ships(t).Configurations) {
		t.Fatalf("%d webhooks of %d configurations", len(f.Webhooks), len(ships(t).Configurations))
	}
	all := judge(f, ships(t))
	if found := append(of(all, "webhooks"), of(all, "certificate")...); len(found) != 0 {
		t.Errorf("%+v", found)
	}
	gone := *f.Webhooks[0].Service.Path
	f.Webhooks = f.Webhooks[1:]
	if found := of(judge(f, ships(t)), "webhooks"); len(found) != 1 || found[0].Result != Fail || !strings.Contains(found[0].Found, "not there") {
		t.Errorf("without %s: %+v", gone, found)
	}
}

func TestLeaderElectionThatCannotBeSeen(t *testing.T) {
	f := healthy(t)
	f.Manager.Lease, f.Manager.Settings.Config = nil, settings(t, "--leader-elect=false")
	if found := of(judge(f, ships(t)), "manager"); len(found) != 0 {
		t.Errorf("nobody is to be elected: %+v", found)
	}
	f = healthy(t)
	f.Manager.Lease, f.Manager.Hidden = nil, true
	f.gaps[topicManager] = []Gap{{What: "the manager", Reason: "not allowed to read: Lease odh-platform-operator"}}
	if found := of(judge(f, ships(t)), "manager"); len(found) != 1 || found[0].Result != Unknown {
		t.Errorf("the Lease may not be read: %+v", found)
	}
}

func TestSettingsInAConfigMapThatMayNotBeRead(t *testing.T) {
	f := healthy(t)
	f.Manager.Settings.Unread = []installed.Unread{
		{Variable: "ENABLE_MLFLOW", Kind: "ConfigMap", Namespace: "opendatahub", Name: "params"}, {Kind: "Secret", Namespace: "opendatahub", Name: "more"},
	}
	found := of(judge(f, ships(t)), "settings")
	if len(found) != 2 || found[0].Result != Unknown || found[1].Result != Unknown {
		t.Fatalf("%+v", found)
	}
	if x := found[0]; x.Subject != "ENABLE_MLFLOW in ConfigMap opendatahub/params" || x.Cure != "ask an administrator for the right to get configmaps params in namespace opendatahub" {
		t.Errorf("%+v", x)
	}
	if x := found[1]; x.Subject != "whatever variables there are in Secret opendatahub/more" || !strings.Contains(x.Cure, "kubectl -n opendatahub get secret more") {
		t.Errorf("%+v", x)
	}
}

func resourceFaults() map[string]fault {
	one := func(v health.Verdict) func(*testing.T, *Facts) {
		return change(func(f *Facts) { f.Resources = []Resource{{"modelregistry", "ModelRegistry", "team", "a", v}} })
	}
	return map[string]fault{
		"failed":     {one(health.Verdict{State: health.Failed, Reason: "DatabaseUnreachable", Message: "no route"}), "resources", Fail, "ModelRegistry team/a: DatabaseUnreachable no route", "docs/troubleshooting.md has reason DatabaseUnreachable"},
		"no reason":  {one(health.Verdict{State: health.Failed}), "resources", Fail, "ModelRegistry team/a: failed", "kubectl odh tree modelregistry/a -n team"},
		"on the way": {one(health.Verdict{State: health.Progressing}), "resources", Warn, "ModelRegistry team/a: progressing", "kubectl odh tree"},
		"paused":     {one(health.Verdict{State: health.Healthy, Paused: true}), "resources", Warn, "ModelRegistry team/a: paused", "kubectl annotate modelregistry a -n team platform.opendatahub.io/paused-"},
		"many": {change(func(f *Facts) {
			for range 30 {
				f.Resources = append(f.Resources, Resource{"mlflow", "MLflow", "", "b", health.Verdict{State: health.Degraded}})
			}
		}), "resources", Warn, "5 more resources need attention", "status --all"},
		"no etcd": {change(func(f *Facts) { f.EtcdSecret = false }), "modelmesh", Fail, "Secret opendatahub/model-serving-etcd: not there", "etcd_connection"},
		"no etcd yet": {change(func(f *Facts) { f.EtcdSecret, f.MeshNamespaces = false, nil }), "modelmesh", Warn,
			"Secret opendatahub/model-serving-etcd: not there", "etcd_connection"},
		"no storage": {change(func(f *Facts) { f.MeshNamespaces[0].Storage = false }), "modelmesh", Fail, "Secret models/storage-config: not there, and 1 models", "docs/components/modelmesh.md"},
		"no storage in the namespace of the manager": {change(func(f *Facts) {
			f.MeshNamespaces, f.Connected = []MeshNamespace{{Name: "opendatahub", Own: true}}, map[string]int{"opendatahub": 2}
		}), "modelmesh", Fail, "Secret opendatahub/storage-config: not there, and 2 models", "docs/components/modelmesh.md"},
		"no etcd for the namespace of the manager": {change(func(f *Facts) {
			f.EtcdSecret, f.MeshNamespaces, f.Connected = false, []MeshNamespace{{Name: "opendatahub", Own: true, Storage: true}}, map[string]int{"opendatahub": 1}
		}), "modelmesh", Fail, "Secret opendatahub/model-serving-etcd: not there", "etcd_connection"},
		"no etcd, and nobody who asks": {change(func(f *Facts) {
			f.EtcdSecret, f.MeshNamespaces = false, []MeshNamespace{{Name: "opendatahub", Own: true}}
		}), "modelmesh", Warn, "Secret opendatahub/model-serving-etcd: not there", "etcd_connection"},
		"no Service": {change(func(f *Facts) { f.MeshNamespaces[0].Service = false }), "modelmesh", Warn, "Namespace models: asks for ModelMesh and has no Service", "logs"},
		"off":        {configured("--enable-modelmesh=false"), "modelmesh", Warn, "Namespace models: asks for ModelMesh (label modelmesh-enabled), which is off", "ENABLE_MODELMESH=true"},
		"elsewhere": {change(func(f *Facts) {
			f.Manager.Settings.Config.ModelMesh.NamespaceScope = true
		}), "modelmesh", Warn, "serves namespace opendatahub only", "NAMESPACE_SCOPE"},
	}
}
