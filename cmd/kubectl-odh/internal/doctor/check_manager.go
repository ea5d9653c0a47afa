package doctor

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/utils/ptr"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/fetch"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/installed"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/status/health"
)

// oldestServer is the first minor release of Kubernetes whose features the manifests need (CEL in CRDs and match conditions).
const oldestServer = "1.30"

// redeploy is the command that installs the manager, its roles and its webhooks again. It names the image: without one, the command
// would deploy the default of the overlay.
func redeploy(f *Facts) string {
	return "make deploy OVERLAY=<overlay> IMG=" + imageOf(f)
}

func imageOf(f *Facts) string { return cmp.Or(f.Manager.Image, "<image of the manager>") }

func checkServer(f *Facts, _ Shipped) (problems []Finding, fine string) {
	switch server, err := version.ParseGeneric(f.Server); {
	case err != nil:
		problems = append(problems, Finding{Result: Unknown, Found: fmt.Sprintf("the API server reports version %q", f.Server), Fix: "kubectl version"})
	case server.LessThan(version.MustParseGeneric(oldestServer)):
		problems = append(problems, Finding{Result: Fail, Subject: f.Server, Found: "older than " + oldestServer, Fix: "upgrade the cluster to " + oldestServer + " or newer"})
	}
	for _, group := range f.Served.Failed {
		problems = append(problems, Finding{Result: Warn, Subject: group, Found: "this aggregated API does not answer",
			Why: "deletion of namespaces and discovery of kinds fail or take long", Fix: "kubectl get apiservices; repair or delete the one of " + group})
	}
	return problems, "the API server has version " + f.Server
}

func checkManager(f *Facts, _ Shipped) (problems []Finding, fine string) {
	d, verdict := f.Manager.Deployment, f.Manager.Health
	if d == nil {
		if len(f.Unread[manager]) > 0 {
			return nil, ""
		}
		return []Finding{{Result: Fail, Subject: "Deployment " + installed.DeploymentName, Found: "does not exist in any namespace that was searched",
			Fix: "install the manager: " + redeploy(f) + "; or select its namespace with --manager-namespace"}}, ""
	}
	kubectl := "kubectl -n " + d.Namespace
	problem := Finding{Result: Fail, Subject: "Deployment " + d.Namespace + "/" + d.Name}
	switch verdict.State {
	case health.Healthy:
		needsLeader := !f.Manager.Settings.Known || f.Manager.Settings.Config.LeaderElection.Enabled || f.Manager.Lease != nil
		if needsLeader && !f.Manager.Lease.Held(f.Now) && (f.Manager.Lease != nil || !f.Manager.Hidden) {
			problem.Result, problem.Found, problem.Why = Warn, "no replica holds the Lease", "controllers run on the leader only"
			problem.Fix = kubectl + " logs deployment/" + d.Name
		}
	case health.Idle:
		problem.Found, problem.Fix = "scaled to zero", kubectl+" scale deployment "+d.Name+" --replicas=1"
	case health.Progressing:
		problem.Result, problem.Found = Warn, "not available yet: "+verdict.Message
		problem.Fix = kubectl + " get pods; wait, or check their events"
	default:
		problem.Found = "not available: " + cmp.Or(verdict.Message, verdict.Reason, string(verdict.State))
		problem.Fix = kubectl + " describe pods -l control-plane=controller-manager; " + kubectl + " logs deployment/" + d.Name
	}
	if problem.Found != "" {
		problems = append(problems, problem)
	}
	for _, namespace := range f.Manager.Others {
		problems = append(problems, Finding{Result: Fail, Subject: "Deployment " + namespace + "/" + installed.DeploymentName,
			Found: "a second manager, beside that of namespace " + d.Namespace, Why: "two managers write the same objects, and undo what the other did",
			Fix: "kubectl -n " + namespace + " delete deployment " + installed.DeploymentName + " (keep the CRDs)"})
	}
	return problems, problem.Subject + " is available, image " + f.Manager.Image
}

// checkVersion compares what can be compared: two releases.
func checkVersion(f *Facts, _ Shipped) (problems []Finding, fine string) {
	here, there := release(f.Plugin), release(f.Manager.Version)
	switch {
	case here == nil || there == nil:
		return nil, fmt.Sprintf("not compared: this program is %q and the manager %q", f.Plugin, f.Manager.Version)
	case here.Major() == there.Major() && here.Minor() == there.Minor():
		return nil, fmt.Sprintf("this program and the manager are of release %d.%d", here.Major(), here.Minor())
	}
	return []Finding{{Result: Warn, Found: fmt.Sprintf("this program is %s, the manager %s", here, there), Fix: "use kubectl-odh of release " + there.String()}}, ""
}

// release parses a version; nil for what is none, such as "latest".
func release(text string) *version.Version {
	text, _, _ = strings.Cut(text, "@")
	v, _ := version.ParseSemantic(text)
	return v
}

func checkSettings(f *Facts, _ Shipped) (problems []Finding, fine string) {
	s := f.Manager.Settings
	if !s.Known {
		return []Finding{{Result: Fail, Found: s.Problem, Fix: "correct the arguments, variables or ConfigMaps of the Deployment; docs/configuration.md has all settings"}}, ""
	}
	for _, u := range s.Unread {
		problems = append(problems, Finding{Result: Unknown, Subject: u.String(), Found: "could not be read, so the default is assumed",
			Fix: "kubectl -n " + u.Namespace + " get " + strings.ToLower(u.Kind) + " " + u.Name + " -o yaml, as a user who may; this program reads no Secrets for settings"})
	}
	if err := s.Config.CheckComplete(); err != nil {
		problems = append(problems, Finding{Result: Fail, Found: err.Error(), Fix: "see the message"})
	}
	for _, notice := range s.Config.Notices {
		problems = append(problems, Finding{Result: Warn, Found: notice, Why: "it is a setting of a former operator", Fix: "remove it"})
	}
	on := strings.Join(s.Config.EnabledComponents(), ", ")
	if on == "" {
		problems = append(problems, Finding{Result: Warn, Found: "no component is on", Why: "the manager does nothing", Fix: "set ENABLE_<COMPONENT>=true, or use an overlay"})
	}
	return append(problems, missingParameters(f, s.Config)...), "on: " + on
}

// missingParameters are those that platforms fill in, and without which something is not published.
func missingParameters(f *Facts, c config.Config) []Finding {
	var out []Finding
	openshift, gateway := f.Served.Kind("Ingress.config.openshift.io").Served(), f.Served.Kind("HTTPRoute.gateway.networking.k8s.io").Served()
	if c.Enabled("mlflow") && gateway && c.MLflow.ExternalURL == "" {
		out = append(out, Finding{Result: Warn, Subject: "mlflow-url", Found: "no external address of MLflow is configured",
			Why: "links and the menu of the console do not work, and the server rejects browsers at that address",
			Fix: "make deploy-to-platform PLATFORM=<odh or rhoai> IMG=" + imageOf(f) + ", or set mlflow-url in params.env of the overlay"})
	}
	registries := c.Enabled("modelregistry") || c.Enabled("modelcatalog")
	if registries && openshift && gateway && c.ModelRegistry.Gateway.Domain == "" && !c.Enabled("platform") {
		out = append(out, Finding{Result: Warn, Subject: "GATEWAY_DOMAIN", Found: "empty",
			Why: "registries and the catalog are published by Routes, and not behind the Gateway", Fix: "set GATEWAY_DOMAIN in params.env, unless Routes are what you want"})
	}
	return out
}

// Original is a former operator, whose work this one does.
type Original struct {
	// Deployment that runs it, and Lease that its replicas compete for; "" where that is not known.
	Deployment, Lease string
	// Components that take its place.
	Components []string
}

// formerOperators are all of them, by the names under which they are installed.
var formerOperators = []Original{
	{"mlflow-operator-controller-manager", "a5eb1b3b.opendatahub.io", []string{"mlflow", "platform"}},
	{"model-registry-operator-controller-manager", "85f368d1.opendatahub.io", []string{"modelregistry"}},
	{"catalog-controller-manager", "catalog.opendatahub.io", []string{"modelcatalog"}},
	{"aihub-controller-manager", "aihub-controller-manager", []string{"platform"}},
	{"modelmesh-controller", "modelmesh-controller-leader-lock", []string{"modelmesh"}},
	{"odh-model-controller", "", []string{"modelmesh"}},
	{"codeflare-operator-manager", "", []string{"raycluster", "appwrapper"}},
	{"appwrapper-controller-manager", "f134c674.codeflare.dev", []string{"appwrapper"}},
}

// originals finds the Deployments and Leases of former operators in all namespaces.
func (g *gatherer) originals(ctx context.Context) {
	g.facts.Originals = slices.Concat(fetch.Map(formerOperators, func(o Original) []Running { return g.running(ctx, o) })...)
}

// running is where a former operator is: where its Deployment is, or a Lease of it that a program holds.
func (g *gatherer) running(ctx context.Context, o Original) []Running {
	found := map[string]Running{} // by namespace
	deployments, _ := g.List(ctx, g.Kind("Deployment.apps"), "", metav1.ListOptions{FieldSelector: "metadata.name=" + o.Deployment})
	for i := range deployments {
		d := fetch.As[appsv1.Deployment](&deployments[i])
		found[d.Namespace] = Running{Original: o, Namespace: d.Namespace, Present: true, Replicas: ptr.Deref(d.Spec.Replicas, 1)}
	}
	var leases []unstructured.Unstructured
	if o.Lease != "" {
		leases, _ = g.List(ctx, g.Kind("Lease.coordination.k8s.io"), "", metav1.ListOptions{FieldSelector: "metadata.name=" + o.Lease})
	}
	for i := range leases {
		if l := installed.ReadLease(&leases[i]); l.Held(g.facts.Now) {
			r := found[l.Namespace]
			r.Original, r.Namespace, r.Holder = o, l.Namespace, l.Holder
			found[l.Namespace] = r
		}
	}
	return slices.Collect(maps.Values(found))
}

func checkOriginals(f *Facts, _ Shipped) (problems []Finding, fine string) {
	for _, r := range f.Originals {
		components := strings.Join(r.Components, ", ")
		switch {
		case !r.Present:
			problems = append(problems, Finding{Result: Fail, Subject: "Lease " + r.Namespace + "/" + r.Lease,
				Found: "held by " + r.Holder + ", a replica of a former operator that does the work of " + components, Fix: "stop the program that holds it"})
		case r.Replicas == 0 && r.Holder == "", f.Manager.Settings.Known && !slices.ContainsFunc(r.Components, f.enabled):
		default:
			problems = append(problems, Finding{Result: Fail, Subject: "Deployment " + r.Namespace + "/" + r.Deployment,
				Found: "a former operator that does the work of " + components + " runs beside this one",
				Fix:   "kubectl -n " + r.Namespace + " scale deployment " + r.Deployment + " --replicas=0; docs/upgrade says how to hand over"})
		}
	}
	return problems, "no former operator does the work of a component that is on"
}
