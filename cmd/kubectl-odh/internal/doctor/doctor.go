// Package doctor checks an installation. Checks run concurrently. If a permission is missing, the result of a check is unknown and names the
// permission.
package doctor

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/cmd/internal/kinds"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/cli"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/fetch"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/installed"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/render"
	"github.com/odh-platform/odh-platform-operator/pkg/nested"
)

// check checks one aspect of an installation.
type check struct {
	name string
	// why is the default consequence of a problem.
	why string
	// run reports problems, and returns the text of a passed check, or "" if the check does not apply.
	run func(context.Context, *checkEnv) (summary string)
	// requiresManager limits the check to installations with a Deployment of the manager, and drops its findings if something is not readable.
	requiresManager bool
}

// checks are in the order of the output.
var checks = []check{
	{"server", "older API servers lack kinds and fields that the operator uses", checkServer, false},
	{"manager", "without a running manager nothing is reconciled; servers keep running", checkManager, false},
	{"version", "this program checks against the manifests of its own version", checkVersion, true},
	{"settings", "a manager does not start with settings that contradict each other", checkSettings, true},
	{"legacy", "the two operators overwrite each other's changes", checkLegacyOperators, false},
	{"crds", "a manager that meets older CRDs loses fields or cannot store what it writes", checkCRDs, false},
	{"capabilities", "components wait while the APIs that they require are not served", checkCapabilities, false},
	{"rights", "the manager cannot do its work; conditions and its log show what was denied", checkPermissions, true},
	{"certificate", "API servers do not call webhooks whose certificate they do not trust", checkCertificate, true},
	{"webhooks", "while a webhook with failurePolicy Fail does not answer, its kinds can be neither created nor changed", checkWebhooks, false},
	{"references", "pods that use them do not start, or keep running with old values", checkReferences, false},
	{"runtimes", "models of the runtime are not served, or are served by pods of an earlier spec", checkRuntimes, false},
}

// Result is the result of a check.
type Result string

// Results, most severe first.
const (
	Fail    Result = "fail"
	Warn    Result = "warn"
	Unknown Result = "unknown"
	OK      Result = "ok"
)

var rank = map[Result]int{Fail: 0, Warn: 1, Unknown: 2, OK: 3}

// Finding is one result of a check.
type Finding struct {
	// Check is the name of the check.
	Check  string `json:"check"`
	Result Result `json:"result"`
	// Subject is the affected object; "" for the whole cluster.
	Subject string `json:"subject,omitempty"`
	// Found is the problem or the summary of a passed check, Why is the consequence, and Fix is a command or a step that solves the problem.
	Found string `json:"found"`
	Why   string `json:"why,omitempty"`
	Fix   string `json:"fix,omitempty"`
}

// checkEnv is the environment of a check.
type checkEnv struct {
	// Reader records gaps of the check.
	fetch.Reader
	now time.Time
	// plugin is the version of this program, server is the version of the API server, such as "v1.34.1".
	plugin, server string
	shipped        manifestSet
	manager        installed.Manager
	findings       []Finding
}

func (e *checkEnv) report(result Result, subject, found, why, fix string) {
	e.findings = append(e.findings, Finding{Result: result, Subject: subject, Found: found, Why: why, Fix: fix})
}

// runChecks runs all checks. It fails if nothing can be read.
func runChecks(ctx context.Context, o *cli.Options, shipped manifestSet) ([]Finding, error) {
	cluster, reader, err := o.Read(ctx)
	if err != nil {
		return nil, err
	}
	base := checkEnv{Reader: reader, now: o.Clock.Now(), plugin: o.Version, shipped: shipped}
	if version, err := cluster.Discovery.ServerVersion(); err == nil {
		base.server = version.GitVersion
	}
	base.manager = installed.Find(ctx, reader, o.ManagerNamespace, o.Clock.Now())
	return slices.Concat(fetch.Map(checks, func(c check) []Finding {
		e := base
		if c.name != "manager" { // gaps of installed.Find are reported by that check
			e.Reader = reader.WithGaps(&fetch.Gaps{})
		}
		return c.execute(ctx, &e)
	})...), nil
}

// execute returns the findings of a check, most severe first.
func (c check) execute(ctx context.Context, e *checkEnv) []Finding {
	okMessage := ""
	if !c.requiresManager || e.manager.Deployment != nil {
		okMessage = c.run(ctx, e)
	}
	found := e.unreadFindings(c.name)
	if !c.requiresManager || len(found) == 0 {
		found = append(found, e.findings...)
	}
	if len(found) == 0 && okMessage != "" {
		found = []Finding{{Result: OK, Found: okMessage}}
	}
	for i := range found {
		found[i].Check = c.name
		if found[i].Result == Fail || found[i].Result == Warn {
			found[i].Why = cmp.Or(found[i].Why, c.why)
		}
	}
	slices.SortStableFunc(found, func(a, b Finding) int { return cmp.Compare(rank[a.Result], rank[b.Result]) })
	return found
}

// unreadFindings returns a finding for each gap.
func (e *checkEnv) unreadFindings(check string) (out []Finding) {
	fix := "run the command as a user with this permission, or retry"
	if check == "manager" {
		fix += "; --manager-namespace names the namespace of the manager"
	}
	for _, line := range e.Lines() {
		out = append(out, Finding{Result: Unknown, Found: line, Fix: fix})
	}
	return out
}

// Report is the result of all checks.
type Report struct {
	// OK reports that no check failed.
	OK bool `json:"ok"`
	// Summary counts findings by result.
	Summary  map[Result]int `json:"summary"`
	Findings []Finding      `json:"findings"`
}

func newReport(found []Finding) Report {
	count := map[Result]int{Fail: 0, Warn: 0, Unknown: 0, OK: 0}
	for _, f := range found {
		count[f.Result]++
	}
	return Report{OK: count[Fail] == 0, Summary: count, Findings: found}
}

// text returns a line for each finding, followed by consequence and fix.
func (r Report) text() string {
	var b strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%-8s %-13s %s\n", f.Result, f.Check, cli.OneLine(strings.TrimPrefix(f.Subject+": "+f.Found, ": ")))
		for _, note := range [][2]string{{"why", f.Why}, {"fix", f.Fix}} {
			if note[1] != "" {
				fmt.Fprintf(&b, "         %s: %s\n", note[0], cli.OneLine(note[1]))
			}
		}
	}
	fmt.Fprintf(&b, "\n%d failed, %d warnings, %d unknown, %d ok\n", r.Summary[Fail], r.Summary[Warn], r.Summary[Unknown], r.Summary[OK])
	return b.String()
}

const long = `Check the installation of the whole cluster, and show how to fix problems.

The exit code is 1 if a check fails, and 3 if no check fails but the result of a check is unknown,
such as for lack of a permission. Warnings do not count. "status" shows the state of the resources.`

const examples = `  kubectl odh doctor
  kubectl odh doctor -o json | jq '.findings[] | select(.result == "fail")'`

// Command returns the command doctor.
func Command(o *cli.Options) *cobra.Command {
	c := &cobra.Command{
		Use: "doctor", Short: "Check the installation, and show how to fix problems", Long: long, Example: examples, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			shipped, err := embeddedManifests()
			if err != nil {
				return err
			}
			found, err := runChecks(c.Context(), o, shipped)
			if err != nil {
				return err
			}
			r := newReport(found)
			return o.Show(cli.View{Kind: "Diagnosis", Object: r, Text: r.text(), Err: cli.ResultError(!r.OK, r.Summary[Unknown] > 0)})
		},
	}
	o.AddOutput(c)
	return c
}

// kindsWithReferences are the kinds whose references are checked.
var kindsWithReferences = []string{"MLflow", "MLflowConfig", "ModelRegistry", "Catalog", "ServingRuntime"}

// listAll returns the objects of a kind, in all namespaces, that its component reconciles.
func (e *checkEnv) listAll(ctx context.Context, kind kinds.Kind) []unstructured.Unstructured {
	found, _ := e.List(ctx, e.Kind(kind.GroupKind().String()), "", metav1.ListOptions{})
	return kind.Select(found)
}

// nameOf returns kind, namespace and name of an object.
func nameOf(u *unstructured.Unstructured) string {
	return u.GetKind() + " " + strings.TrimPrefix(u.GetNamespace()+"/"+u.GetName(), "/")
}

// checkReferences reports missing objects and keys that custom resources refer to. MLflow refers to objects in the namespace of its server.
func checkReferences(ctx context.Context, e *checkEnv) (summary string) {
	count := 0
	for _, kind := range kinds.All() {
		if !slices.Contains(kindsWithReferences, kind.Kind) {
			continue
		}
		for _, u := range e.listAll(ctx, kind) {
			for _, ref := range referencesOf(&u) {
				count++
				e.checkReference(ctx, nameOf(&u), cmp.Or(u.GetNamespace(), e.manager.Settings.Namespace), ref)
			}
		}
	}
	return fmt.Sprintf("all %d referenced Secrets and ConfigMaps exist", count)
}

func (e *checkEnv) checkReference(ctx context.Context, subject, namespace string, ref reference) {
	if namespace == "" {
		e.report(Unknown, subject, ref.kind+" "+ref.name+" could not be read: the namespace of the server is not known", "",
			"run the command as a user who may read the Deployment of the manager; --manager-namespace names its namespace")
		return
	}
	word, kubectl, name := strings.ToLower(ref.kind), "kubectl -n "+namespace, ref.kind+" "+namespace+"/"+ref.name
	u, err := e.Get(ctx, e.Kind(ref.kind), namespace, ref.name)
	if err != nil {
		return
	}
	if u == nil {
		create := kubectl + " create " + strings.Replace(word, "secret", "secret generic", 1) + " " + ref.name
		for _, key := range ref.keys {
			create += " --from-literal=" + key + "=..."
		}
		e.report(Fail, subject, name+" does not exist", "", create)
		return
	}
	missing := slices.DeleteFunc(slices.Clone(ref.keys), func(key string) bool { // binaryData exists in ConfigMaps only
		return nested.At(u.Object, "data", key) != nil || nested.At(u.Object, "binaryData", key) != nil
	})
	if len(missing) > 0 {
		e.report(Fail, subject, name+" has no key "+strings.Join(missing, ", "), "", kubectl+" edit "+word+" "+ref.name+", and add the missing keys")
	}
}

// reference is a referenced Secret or ConfigMap with the required keys.
type reference struct {
	kind, name string
	keys       []string
}

// impliedKeys are the keys that a field of a kind, given by its path, requires without naming them.
var impliedKeys = map[string][]string{
	"MLflowConfig spec.artifactRootSecret": {"AWS_S3_BUCKET"}, "MLflowConfig spec.archiveRootSecret": {"AWS_S3_BUCKET"},
	"Catalog spec.database.external.secretName":   {"database-name", "database-user", "database-password"},
	"Catalog spec.database.connection.secretName": {"host", "port", "dbname", "user", "password"}, "Catalog spec.database.connection.caSecretName": {"ca.crt"},
	"Catalog spec.authProxy.certificateSecretName": {"tls.crt", "tls.key"}, "Catalog spec.proxy.certificateSecretName": {"tls.crt", "tls.key"},
}

// referencesOf returns the required references in the spec of an object, without duplicates. It recognizes fields by name, because all APIs
// of Kubernetes and of the operator follow the same convention.
func referencesOf(u *unstructured.Unstructured) (out []reference) {
	found := map[string]reference{}
	walk("spec", u.Object["spec"], func(field string, value any) {
		name, ok := value.(string)
		if !ok {
			name = nested.String(value, "name")
		}
		kind := referencedKind(field)
		if kind == "" || name == "" {
			return
		}
		keys := append(found[kind+" "+name].keys, impliedKeys[u.GetKind()+" "+field]...)
		if key := nested.String(value, "key"); key != "" {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		found[kind+" "+name] = reference{kind, name, slices.Compact(keys)}
	})
	for _, id := range slices.Sorted(maps.Keys(found)) {
		out = append(out, found[id])
	}
	return out
}

// walk visits all fields of a value by their paths, and each element of a list with the path of its field. It skips optional references.
func walk(field string, value any, visit func(field string, value any)) {
	if optional, _ := nested.At(value, "optional").(bool); optional {
		return
	}
	visit(field, value)
	switch v := value.(type) {
	case map[string]any:
		for name, child := range v {
			walk(field+"."+name, child, visit)
		}
	case []any:
		for _, element := range v {
			walk(field, element, visit)
		}
	}
}

// referencedKind returns the kind that a field refers to, or "".
func referencedKind(field string) string {
	word := strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(field), "name"), "ref")
	for suffix, kind := range map[string]string{
		"secret": "Secret", "secrets": "Secret", "secretkey": "Secret", "urifrom": "Secret", "configmap": "ConfigMap", "configmapkey": "ConfigMap",
	} {
		if strings.HasSuffix(word, suffix) {
			return kind
		}
	}
	return ""
}

// checkRuntimes checks the runtimes of ModelMesh, which have no status for errors.
func checkRuntimes(ctx context.Context, e *checkEnv) (summary string) {
	if !e.manager.IsEnabled("modelmesh") { // or its settings are not known
		return ""
	}
	runtimeProblem, count := render.RuntimeProblems(ctx, e.Reader, e.manager), 0
	for _, kind := range kinds.All() {
		if !kinds.IsRuntime(kind.GroupVersionKind) {
			continue
		}
		for _, u := range e.listAll(ctx, kind) {
			count++
			if problem := runtimeProblem(&u); problem != "" {
				e.report(Fail, nameOf(&u), problem, "", "correct its spec")
			}
		}
	}
	return fmt.Sprintf("ModelMesh can create the pods of all %d runtimes for ModelMesh", count)
}
