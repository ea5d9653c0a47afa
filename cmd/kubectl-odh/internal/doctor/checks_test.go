package doctor

import (
	"maps"
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

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/fetch"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/installed"
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
			if finding.Why != "" || finding.Fix != "" || finding.Subject != "" {
				t.Errorf("%s: what is ok needs neither reason nor fix: %+v", name, finding)
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
	change     func(*testing.T, *Facts)
	check      string
	result     Result
	found, fix string
}

// Each fault alone is found by its check, and by no other.
func TestFaults(t *testing.T) {
	for group, faults := range map[string]map[string]fault{
		"cluster": clusterFaults(), "manager": managerFaults(), "originals": originalFaults(), "crds": crdFaults(), "rights": rightsFaults(),
		"webhooks": webhookFaults(),
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
				if x.Result != tc.result || !strings.Contains(x.Fix, tc.fix) || x.Why == "" && x.Result != Unknown || x.Fix == "" {
					t.Errorf("%+v, want %s, fix %q", x, tc.result, tc.fix)
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

func without(gvk schema.GroupVersionKind, more ...schema.GroupVersionKind) func(*testing.T, *Facts) {
	return change(func(f *Facts) {
		all := slices.DeleteFunc(everything(), func(k fetch.Kind) bool { return k.GroupVersionKind == gvk })
		for _, k := range more {
			all = append(all, kind(k))
		}
		f.Served = fetch.NewSet(all...)
	})
}

func clusterFaults() map[string]fault {
	old := func(gvk schema.GroupVersionKind) schema.GroupVersionKind {
		return gvk.GroupKind().WithVersion("v1alpha0")
	}
	return map[string]fault{
		"old server":          {change(func(f *Facts) { f.Server = "v1.29.4+abc" }), "server", Fail, "older than 1.30", "upgrade"},
		"odd server":          {change(func(f *Facts) { f.Server = "" }), "server", Unknown, `reports version ""`, "kubectl version"},
		"an API that is away": {change(func(f *Facts) { f.Served.Failed = []string{"metrics.k8s.io/v1beta1"} }), "server", Warn, "does not answer", "apiservices"},
		"half installed":      {without(capability.HTTPRoute, old(capability.HTTPRoute)), "capabilities", Warn, "served as v1alpha0 and not as v1", "install a release"},
		"no KubeRay":          {without(capability.RayCluster), "capabilities", Warn, "component raycluster: on, and waits for RayCluster.ray.io/v1", "KubeRay"},
		"no Kueue":            {without(capability.KueueWorkload), "capabilities", Warn, "Kueue: not installed", "Kueue"},
	}
}

func managerFaults() map[string]fault {
	state := func(s health.State, message string) func(*testing.T, *Facts) {
		return change(func(f *Facts) { f.Manager.Health = health.Verdict{State: s, Message: message} })
	}
	return map[string]fault{
		"gone": {change(gone), "manager", Fail, "does not exist in any namespace", "make deploy OVERLAY=<overlay> IMG="},
		"not to seen": {change(func(f *Facts) {
			gone(f)
			f.Unread[manager] = []Finding{{Result: Unknown, Subject: "the manager", Found: "not allowed to read: Deployment", Fix: "try again"}}
		}), "manager", Unknown, "the manager: not allowed", ""},
		"scaled down": {state(health.Idle, ""), "manager", Fail, "scaled to zero", "kubectl -n opendatahub scale deployment odh-platform-operator-controller-manager --replicas=1"},
		"starting":    {state(health.Progressing, "0 of 1"), "manager", Warn, "not available yet: 0 of 1", "get pods"},
		"broken":      {state(health.Failed, "no image"), "manager", Fail, "not available: no image", "describe pods"},
		"leaderless":  {change(func(f *Facts) { f.Manager.Lease = nil }), "manager", Warn, "no replica holds the Lease", "logs"},
		"lost lease":  {change(func(f *Facts) { f.Manager.Lease.Expires = noon.Add(-time.Second) }), "manager", Warn, "no replica holds the Lease", "logs"},
		"two":         {change(func(f *Facts) { f.Manager.Others = []string{"other"} }), "manager", Fail, "Deployment other/odh-platform-operator-controller-manager: a second manager", "kubectl -n other delete deployment"},
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
	*f = Facts{Now: noon, Server: f.Server, Served: f.Served, CRDs: f.CRDs, Services: f.Services, Unread: f.Unread}
}

// Version and settings are not compared where there is nothing to compare.
func TestWhatCannotBeCompared(t *testing.T) {
	for _, v := range []string{"", "latest", "sha256:0123456789ab", "dev"} {
		f := healthy(t)
		f.Manager.Version = v
		if found, fine := checkVersion(f, Shipped{}); len(found) > 0 || !strings.HasPrefix(fine, "not compared") {
			t.Errorf("%q: %+v, %q", v, found, fine)
		}
	}
	f := healthy(t)
	f.Manager.Settings.Config = config.Config{}
	if found := of(judge(f, ships(t)), "settings"); len(found) != 1 || !strings.Contains(found[0].Found, "no component is on") {
		t.Errorf("nothing is on: %+v", found)
	}
}

func originalFaults() map[string]fault {
	found := func(deployment string, present bool, replicas int32, holder string) func(*testing.T, *Facts) {
		return change(func(f *Facts) {
			i := slices.IndexFunc(formerOperators, func(o Original) bool { return o.Deployment == deployment })
			f.Originals = []Running{{Original: formerOperators[i], Namespace: "old", Present: present, Replicas: replicas, Holder: holder}}
		})
	}
	faults := map[string]fault{
		"a Lease alone": {found("catalog-controller-manager", false, 0, "pod_1"), "originals", Fail, "Lease old/catalog.opendatahub.io: held by pod_1", "stop"},
		"still leading": {found("mlflow-operator-controller-manager", true, 0, "pod_1"), "originals", Fail, "runs beside this one", "--replicas=0"},
	}
	for _, o := range formerOperators {
		faults[o.Deployment] = fault{found(o.Deployment, true, 1, ""), "originals", Fail,
			"Deployment old/" + o.Deployment + ": a former operator that does the work of " + strings.Join(o.Components, ", "), "kubectl -n old scale deployment " + o.Deployment + " --replicas=0"}
	}
	return faults
}

func TestOriginalsThatDoNoHarm(t *testing.T) {
	f := healthy(t)
	f.Originals = []Running{{Original: formerOperators[0], Namespace: "old", Present: true}}
	if found, _ := checkOriginals(f, Shipped{}); len(found) > 0 {
		t.Errorf("scaled to zero: %+v", found)
	}
	f.Originals = []Running{{Original: formerOperators[6], Namespace: "old", Present: true, Replicas: 1}}
	f.Manager.Settings.Config = settings(t, "--enable-raycluster=false", "--enable-appwrapper=false")
	if found, _ := checkOriginals(f, Shipped{}); len(found) > 0 {
		t.Errorf("its component is off: %+v", found)
	}
}

func crdFaults() map[string]fault {
	const name, converted = "mlflows.mlflow.opendatahub.io", "modelregistries.modelregistry.opendatahub.io"
	on := func(name string, c func(*apiextensionsv1.CustomResourceDefinition)) func(*testing.T, *Facts) {
		return change(func(f *Facts) { c(f.CRDs[name]) })
	}
	return map[string]fault{
		"missing":         {change(func(f *Facts) { f.CRDs[name] = nil }), "crds", Fail, "CRD " + name + ": does not exist", "make install"},
		"not established": {on(name, func(c *apiextensionsv1.CustomResourceDefinition) { c.Status.Conditions = nil }), "crds", Fail, "not established", "describe crd " + name},
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
		}), "crds", Fail, "(conversion): calls Service opendatahub/gone, which does not exist", "make install"},
		"conversion without CA": {on(converted, func(c *apiextensionsv1.CustomResourceDefinition) {
			c.Spec.Conversion.Webhook.ClientConfig.CABundle = nil
		}), "crds", Fail, "has no caBundle", "rollout restart"},
		"may not be read": {change(func(f *Facts) {
			f.Unread[crds] = []Finding{{Result: Unknown, Subject: "customresourcedefinitions " + name, Found: "may not be read", Fix: "ask"}}
			delete(f.CRDs, name)
		}), "crds", Unknown, "may not be read", "ask"},
	}
}

// A CRD that is missing is no fault while the component that looks after its kind is known to be off.
func TestCRDsThatAreNotNeeded(t *testing.T) {
	names := map[string]string{
		"aihubs.components.platform.opendatahub.io": "platform", "mlflows.mlflow.opendatahub.io": "mlflow",
		"modelregistries.modelregistry.opendatahub.io": "modelregistry", "appwrappers.workload.codeflare.dev": "appwrapper",
		"predictors.serving.kserve.io": "modelmesh",
	}
	for name, component := range names {
		off := healthy(t)
		off.Manager.Settings.Config = settings(t, "--enable-"+component+"=false")
		off.CRDs[name] = nil
		if found := judgeCRD(off, ships(t).CRDs[name]); len(found) > 0 {
			t.Errorf("%s: %+v", name, found)
		}
		another, unknown := healthy(t), healthy(t)
		another.Manager.Settings.Config = settings(t, "--enable-raycluster=false")
		unknown.Manager.Settings.Known = false
		for _, f := range []*Facts{another, unknown} {
			f.CRDs[name] = nil
			if found := judgeCRD(f, ships(t).CRDs[name]); len(found) != 1 || found[0].Result != Fail || found[0].Found != "does not exist" {
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
		"no binding":  {change(func(f *Facts) { f.Granted = Granted{} }), "rights", Fail, "more", "make deploy OVERLAY=<overlay> IMG="},
		"no Leases": {change(func(f *Facts) { f.Granted.Inside = nil }), "rights", Fail,
			"leases.coordination.k8s.io", "of component manager"},
		"may not be read": {change(func(f *Facts) {
			f.Unread[rights] = []Finding{{Result: Unknown, Subject: "clusterrolebindings", Found: "may not be read", Fix: "ask"}}
		}), "rights", Unknown, "may not be read", "ask"},
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
	f.Granted.Inside = append(f.Granted.Inside, beside...)
	if found := of(judge(f, ships(t)), "rights"); len(found) > 0 {
		t.Errorf("%+v", found)
	}
	f.Granted.Inside = f.Granted.Inside[:len(f.Granted.Inside)-len(beside)]
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
		"left behind":       {stranger(admissionregistrationv1.Fail), "webhooks", Fail, "calls Service old/codeflare-operator-webhook-service, which does not exist", "kubectl delete validatingwebhookconfiguration left-behind"},
		"left, but ignored": {stranger(admissionregistrationv1.Ignore), "webhooks", Warn, "which does not exist", "kubectl delete validatingwebhookconfiguration left-behind"},
		"led elsewhere":     {first(func(w *Webhook) { w.Service.Name = "codeflare-operator-webhook-service" }), "webhooks", Fail, "codeflare-operator-webhook-service, which does not exist", "make deploy OVERLAY=<overlay> IMG="},
		"no CA":             {first(func(w *Webhook) { w.CABundle = nil }), "webhooks", Fail, "has no caBundle", "rollout restart"},
		"damaged CA":        {first(func(w *Webhook) { w.CABundle = []byte("x") }), "webhooks", Fail, "holds no certificate", "rollout restart"},
		"another CA": {func(t *testing.T, f *Facts) {
			f.Webhooks[0].CABundle = authority(t, noon).Data[corev1.ServiceAccountRootCAKey]
		}, "webhooks", Fail, "does not verify", "rollout restart"},
		"ignored": {first(func(w *Webhook) { w.Policy = admissionregistrationv1.Ignore }), "webhooks", Warn, "has failurePolicy Ignore", "make deploy OVERLAY=<overlay> IMG="},
		"missing": {change(func(f *Facts) { f.Webhooks = f.Webhooks[1:] }), "webhooks", Fail, "does not exist, and the component appwrapper is on", "make deploy OVERLAY=<overlay> IMG="},
		"expired": {func(t *testing.T, f *Facts) { dated(t, f, noon.AddDate(-11, 0, 0)) }, "certificate", Fail, "expired on", "delete secret"},
		"empty": {change(func(f *Facts) {
			f.Certificate.Data[corev1.TLSCertKey] = nil
		}), "certificate", Fail, "holds no certificate", "delete secret"},
		"of another namespace": {func(_ *testing.T, f *Facts) {
			// The names of the certificate are those of opendatahub.
			f.Manager.Deployment.Namespace = "elsewhere"
		}, "certificate", Fail, "is not valid for odh-platform-operator-webhook.elsewhere.svc", "delete secret"},
		"nowhere": {change(func(f *Facts) { f.Certificate = nil }), "certificate", Warn, "does not exist", "logs"},
		"may not be read": {change(func(f *Facts) {
			f.Unread[certificate] = []Finding{{Result: Unknown, Subject: "secrets " + certificateSecret, Found: "may not be read", Fix: "ask"}}
		}), "certificate", Unknown, "may not be read", "ask"},
	}
}

// dated gives the manager a certificate that was issued at a moment, which all webhooks trust.
func dated(t *testing.T, f *Facts, at time.Time) {
	t.Helper()
	f.Certificate = authority(t, at)
	f.Webhooks, f.CRDs["modelregistries.modelregistry.opendatahub.io"].Spec.Conversion = nil, nil
	f.Manager.Settings.Config = settings(t, "--components=platform")
}

// Behind the one Service are the webhooks of all components, so all of them report it.
func TestServiceWithoutPods(t *testing.T) {
	f := healthy(t)
	f.Services[types.NamespacedName{Namespace: "opendatahub", Name: webhookService}] = 0
	found := of(judge(f, ships(t)), "webhooks")
	if len(found) != len(f.Webhooks) {
		t.Errorf("%d of %d webhooks: %+v", len(found), len(f.Webhooks), found)
	}
	if found := of(judge(f, ships(t)), "crds"); len(found) != 1 || !strings.Contains(found[0].Found, "which has no ready pod") {
		t.Errorf("the conversion: %+v", found)
	}
	f.Services[types.NamespacedName{Namespace: "opendatahub", Name: webhookService}] = -1 // not known
	if found := of(judge(f, ships(t)), "webhooks"); len(found) != 0 {
		t.Errorf("the pods are not known: %+v", found)
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
	for _, name := range slices.Sorted(maps.Keys(s.Calls)) {
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
	if found := of(judge(f, ships(t)), "webhooks"); len(found) != 1 || found[0].Result != Fail || !strings.Contains(found[0].Found, "does not exist") {
		t.Errorf("without %s: %+v", gone, found)
	}
}

func TestLeaderElectionThatCannotBeSeen(t *testing.T) {
	f := healthy(t)
	f.Manager.Lease, f.Manager.Settings.Config = nil, settings(t, "--leader-elect=false")
	if found := of(judge(f, ships(t)), "manager"); len(found) != 0 {
		t.Errorf("leader election is off: %+v", found)
	}
	f = healthy(t)
	f.Manager.Lease, f.Manager.Hidden = nil, true
	f.Unread[manager] = []Finding{{Result: Unknown, Subject: "the manager", Found: "not allowed to read: Lease odh-platform-operator"}}
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
	if x := found[0]; x.Subject != "ENABLE_MLFLOW in ConfigMap opendatahub/params" || !strings.HasPrefix(x.Fix, "kubectl -n opendatahub get configmap params") {
		t.Errorf("%+v", x)
	}
	if x := found[1]; x.Subject != "whatever variables there are in Secret opendatahub/more" || !strings.Contains(x.Fix, "kubectl -n opendatahub get secret more") {
		t.Errorf("%+v", x)
	}
}

// The KubeRay of the platform is no fault. It is reported where Routes are served, without which it secures nothing.
func TestTheKubeRayOfThePlatformIsReported(t *testing.T) {
	for name, c := range map[string]struct {
		change   func(*Facts)
		reported bool
	}{
		"there":          {func(f *Facts) { onOpenShift(f); f.PlatformKubeRay = true }, true},
		"without Routes": {func(f *Facts) { f.PlatformKubeRay = true }, false},
		"not there":      {onOpenShift, false},
	} {
		f := healthy(t)
		c.change(f)
		found := slices.DeleteFunc(judge(f, ships(t)), func(f Finding) bool { return f.Check != "capabilities" })
		if len(found) != 1 || found[0].Result != OK || strings.Contains(found[0].Found, "the KubeRay of the platform secures them") != c.reported {
			t.Errorf("%s: %+v", name, found)
		}
	}
}
