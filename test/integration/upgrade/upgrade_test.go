package upgrade_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/cluster/operator"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// writtenObject is an object that a manager created or changed.
type writtenObject struct {
	UID types.UID
	// Template is spec.template as JSON; null for Jobs and for kinds without it.
	Template string
}

// listWrittenObjects returns the existing objects that managers wrote, by `Kind namespace/name`.
func listWrittenObjects(ctx context.Context) map[string]writtenObject {
	GinkgoHelper()
	all := map[string]writtenObject{}
	for _, e := range env.Since(0).ObjectWrites(manager.User) {
		if e.Verb == "create" && e.Code != 201 || e.Subresource != "" || e.DryRun || e.Verb == "delete" {
			continue
		}
		kind, err := env.Admin.RESTMapper().KindFor(schema.GroupVersionResource{Group: e.Group, Resource: e.Resource})
		Expect(err).NotTo(HaveOccurred())
		live := framework.Unstructured(kind, e.Namespace, e.Name)
		err = env.Admin.Get(ctx, client.ObjectKeyFromObject(live), live)
		if apierrors.IsNotFound(err) {
			continue
		}
		Expect(err).NotTo(HaveOccurred())
		template, found, _ := unstructured.NestedFieldNoCopy(live.Object, "spec", "template")
		if !found || kind.Kind == "Job" {
			template = nil
		}
		text, err := json.Marshal(template)
		Expect(err).NotTo(HaveOccurred())
		all[fmt.Sprintf("%s %s/%s", kind.Kind, e.Namespace, e.Name)] = writtenObject{live.GetUID(), string(text)}
	}
	return all
}

// install applies a kustomization without the Deployment of the manager, as `kubectl apply --server-side --force-conflicts` does. Like
// GitOps tools, it deletes objects that only the installed version has, except Namespaces and CRDs.
func install(ctx context.Context, dir string, installed []*unstructured.Unstructured) []*unstructured.Unstructured {
	GinkgoHelper()
	objects, err := operator.Kustomize(dir)
	Expect(err).NotTo(HaveOccurred())
	objects = slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "Deployment" })
	Expect(operator.RouteWebhooks(objects, int64(env.Installed.WebhookPort))).To(Succeed())
	for _, o := range objects {
		Expect(env.Admin.Apply(ctx, client.ApplyConfigurationFromUnstructured(o.DeepCopy()), client.FieldOwner("kubectl"), client.ForceOwnership)).
			To(Succeed(), "%s %s", o.GetKind(), o.GetName())
	}
	for _, obsolete := range installed {
		isKept := slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool {
			return o.GetKind() == obsolete.GetKind() && o.GetName() == obsolete.GetName() && o.GetNamespace() == obsolete.GetNamespace()
		})
		if !isKept && obsolete.GetKind() != "Namespace" && obsolete.GetKind() != "CustomResourceDefinition" {
			Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, obsolete.DeepCopy()))).To(Succeed())
		}
	}
	return objects
}

// documentedReplacements returns the Deployments whose pods are replaced according to the unreleased section of the changelog. In the
// section, REGISTRY is a placeholder for the name of each ModelRegistry.
func documentedReplacements(resources []*unstructured.Unstructured) []string {
	GinkgoHelper()
	root, err := cluster.RepositoryRoot()
	Expect(err).NotTo(HaveOccurred())
	content, err := os.ReadFile(filepath.Join(root, "CHANGELOG.md"))
	Expect(err).NotTo(HaveOccurred())
	_, section, found := strings.Cut(string(content), "\n### Replaced pods\n")
	Expect(found).To(BeTrue(), "CHANGELOG.md must list the Deployments whose pods the upgrade replaces")
	section, _, _ = strings.Cut(section, "\n#")
	var names []string
	for _, item := range regexp.MustCompile("(?m)^- Deployment `([^`]+)`").FindAllStringSubmatch(section, -1) {
		if item[1] != "REGISTRY" {
			names = append(names, item[1])
			continue
		}
		for _, o := range resources {
			if o.GetKind() == "ModelRegistry" {
				names = append(names, o.GetName())
			}
		}
	}
	return names
}

// replacedDeployments returns the Deployments whose pod template changed.
func replacedDeployments(before, after map[string]writtenObject) []string {
	var names []string
	for key, previousObject := range before {
		if current, found := after[key]; found && current.Template != previousObject.Template {
			names = append(names, key[strings.LastIndex(key, "/")+1:])
		}
	}
	slices.Sort(names)
	return names
}

// expectKept checks that no object in before was deleted or recreated.
func expectKept(before, after map[string]writtenObject) {
	GinkgoHelper()
	var lost []string
	for key, previousObject := range before {
		if current, found := after[key]; !found || current.UID != previousObject.UID {
			lost = append(lost, key)
		}
	}
	Expect(lost).To(BeEmpty(), "objects that were deleted or recreated")
}

// repeatedWrites returns the writes to each object that the manager wrote more than once since a position in the audit log, except writes of
// the status of custom resources.
func repeatedWrites(start framework.AuditPosition) map[string]framework.Entries {
	GinkgoHelper()
	all := map[string]framework.Entries{}
	for _, e := range env.Since(start).ObjectWrites(manager.User) {
		if e.Subresource != "status" {
			key := fmt.Sprintf("%s %s/%s", e.Resource, e.Namespace, e.Name)
			all[key] = append(all[key], e)
		}
	}
	maps.DeleteFunc(all, func(_ string, entries framework.Entries) bool { return len(entries) < 2 })
	return all
}

// startManager starts the manager of a version, and waits until the resources are ready and the manager is idle.
func startManager(ctx context.Context, binary string, resources []*unstructured.Unstructured) {
	GinkgoHelper()
	options := env.Options(env.Installed)
	options.Binary, options.Env = binary, append(options.Env, "ENABLE_PLATFORM=true")
	manager = env.StartManager(ctx, options)
	env.WaitReady(ctx, resources)
	env.WaitIdle(manager.User, idlePeriod, waitTimeout)
}

var _ = Describe("An upgrade", func() {
	It("keeps every kind ready with at most one write for each object, and a downgrade recreates no object", func(ctx SpecContext) {
		env.Namespace(ctx)
		objects := install(ctx, previous.tree+"/config/default", nil)
		startManager(ctx, previous.manager, nil)
		platform, resources := env.PlatformResources(), env.Resources()
		env.Create(ctx, platform[:len(platform)-1]...)
		env.WaitReady(ctx, platform)
		env.Create(ctx, resources...) // except the Catalog, which exists
		resources = append(resources, platform...)
		env.WaitReady(ctx, resources)
		env.WaitIdle(manager.User, idlePeriod, waitTimeout)
		before := listWrittenObjects(ctx)
		Expect(len(before)).To(BeNumerically(">", 40))

		By("upgrading")
		manager.Stop(ctx)
		objects = install(ctx, "config/default", objects)
		begin := env.AuditPosition()
		startManager(ctx, "", resources)
		after := listWrittenObjects(ctx)
		expectKept(before, after)
		AddReportEntry("replaced", fmt.Sprint(replacedDeployments(before, after)))
		Expect(repeatedWrites(begin)).To(BeEmpty(), "objects that were written more than once")
		Expect(replacedDeployments(before, after)).To(ConsistOf(documentedReplacements(resources)), "CHANGELOG.md must list the Deployments whose pods are replaced")

		By("downgrading")
		manager.Stop(ctx)
		install(ctx, previous.tree+"/config/default", objects)
		begin = env.AuditPosition()
		startManager(ctx, previous.manager, resources)
		downgraded := listWrittenObjects(ctx)
		expectKept(before, downgraded)
		Expect(replacedDeployments(before, downgraded)).To(BeEmpty(), "pod templates after the downgrade differ from those before the upgrade")
		deleted := env.Since(begin).ByUser(manager.User).Where(func(e framework.Entry) bool { return strings.HasPrefix(e.Verb, "delete") && e.Code < 300 })
		Expect(deleted).To(BeEmpty(), "deletions during the downgrade")
		env.ExpectIdle(manager.User, idlePeriod)
		Expect(manager.Process.Running()).To(BeTrue())
	}, NodeTimeout(specTimeout))
})
