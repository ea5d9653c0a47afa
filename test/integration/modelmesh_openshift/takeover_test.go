package modelmesh_openshift_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/openshift"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/runtimes"
	"github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// recording has the objects of the replaced operator on a cluster other than OpenShift.
const recording = "../../../controllers/modelmesh/resources/testdata/recordings/builtin-triton-scaled-to-zero.yaml"

// sidecar is the container that the Open Data Hub build of the replaced operator added to each pod; NAMESPACE is a placeholder.
const sidecar = `
name: oauth-proxy
image: registry.example.com/oauth-proxy@sha256:d3056b35d9a205b9f2c48d924f199c5ac23904eb18d526e4bff229e7c7181415
args:
- --https-address=:8443
- --provider=openshift
- --openshift-service-account="modelmesh-serving-sa"
- --upstream=http://localhost:8008
- --tls-cert=/etc/tls/private/tls.crt
- --tls-key=/etc/tls/private/tls.key
- --cookie-secret=SECRET
- '--openshift-delegate-urls={"/": {"namespace": "NAMESPACE", "resource": "services", "verb": "get"}}'
- '--openshift-sar={"namespace": "NAMESPACE", "resource": "services", "verb": "get"}'
- --skip-auth-regex='(^/metrics|^/apis/v1beta1/healthz)'
ports:
- {name: https, containerPort: 8443}
livenessProbe:
  httpGet: {path: /oauth/healthz, port: 8443, scheme: HTTPS}
  initialDelaySeconds: 30
  timeoutSeconds: 1
  periodSeconds: 5
  successThreshold: 1
  failureThreshold: 3
readinessProbe:
  httpGet: {path: /oauth/healthz, port: 8443, scheme: HTTPS}
  initialDelaySeconds: 5
  timeoutSeconds: 1
  periodSeconds: 5
  successThreshold: 1
  failureThreshold: 3
resources:
  limits: {cpu: 100m, memory: 256Mi}
  requests: {cpu: 100m, memory: 256Mi}
volumeMounts:
- {name: proxy-tls, mountPath: /etc/tls/private}
`

// guarded adds the changes of the Open Data Hub build to a recorded Deployment.
func guarded(o *unstructured.Unstructured, namespace string) *appsv1.Deployment {
	GinkgoHelper()
	var d appsv1.Deployment
	text, err := json.Marshal(o.Object)
	Expect(err).NotTo(HaveOccurred())
	Expect(json.Unmarshal(text, &d)).To(Succeed())
	var c corev1.Container
	Expect(yaml.UnmarshalStrict([]byte(sidecar), &c)).To(Succeed())
	for i, arg := range c.Args {
		c.Args[i] = strings.ReplaceAll(arg, "NAMESPACE", namespace)
	}
	pod := &d.Spec.Template.Spec
	pod.Containers = slices.Insert(pod.Containers, 1, c)
	pod.Volumes = slices.Insert(pod.Volumes, 0, corev1.Volume{Name: "proxy-tls", VolumeSource: corev1.VolumeSource{
		Secret: &corev1.SecretVolumeSource{SecretName: "model-serving-proxy-tls"},
	}})
	pod.ServiceAccountName = "modelmesh-serving-sa"
	d.Spec.Replicas = new(int32(2))
	return &d
}

// createLegacyObjects creates the objects of the replaced operator in a namespace with its field manager: of the Open Data Hub build with the sidecar, or
// of the build without it.
func createLegacyObjects(ctx context.Context, ns string, withGuard bool) {
	GinkgoHelper()
	namespace := framework.NamespaceNamed(ns)
	env.Get(ctx, namespace)
	owners := map[string]types.UID{ns: namespace.UID}
	for _, o := range framework.Recording(recording, "vision", ns) {
		refs := o.GetOwnerReferences()
		for i := range refs {
			refs[i].UID = owners[refs[i].Name]
		}
		o.SetOwnerReferences(refs)
		var stored client.Object = o
		switch o.GetKind() {
		case "ServiceMonitor", "ConfigMap", "Secret":
			continue // recorded only for the reader
		case "Service":
			Expect(unstructured.SetNestedField(o.Object, "None", "spec", "clusterIP")).To(Succeed())
			unstructured.RemoveNestedField(o.Object, "spec", "clusterIPs")
		case "Deployment":
			if withGuard {
				stored = guarded(o, ns)
			}
		}
		createByLegacy(ctx, stored)
		owners[stored.GetName()] = stored.GetUID()
	}
}

// createByLegacy creates objects with the field manager of both builds of the replaced operator.
func createByLegacy(ctx context.Context, objects ...client.Object) {
	GinkgoHelper()
	for _, o := range objects {
		Expect(env.Admin.Create(ctx, o, client.FieldOwner("manager"))).To(Succeed(), "%T %s", o, o.GetName())
	}
}

// waitRevision waits until the Deployment of plant has a revision.
func waitRevision(ctx context.Context, ns, revision string) *appsv1.Deployment {
	GinkgoHelper()
	d := &appsv1.Deployment{ObjectMeta: objectMeta(ns, "modelmesh-serving-triton-a")}
	env.WaitFor(ctx, d, func(g Gomega) {
		g.Expect(d.Annotations).To(HaveKeyWithValue("deployment.kubernetes.io/revision", revision))
	})
	return d
}

// firstWrite returns the first write of the manager to an object since a position in the log.
func firstWrite(start framework.AuditPosition, ns, resource, name string) framework.Entry {
	GinkgoHelper()
	writes := requests(start, ns).Writes().Where(func(e framework.Entry) bool { return e.Resource == resource && e.Name == name })
	Expect(writes).NotTo(BeEmpty(), "%s %s", resource, name)
	return writes[0]
}

// waitMeshUnreachable waits until the status of a model reports that its mesh, which has no running pod, does not respond. This is the last write,
// some seconds after the first call.
func waitMeshUnreachable(ctx context.Context, model *v1beta1.InferenceService) {
	GinkgoHelper()
	env.WaitFor(ctx, model, func(g Gomega) {
		text, err := json.Marshal(model.Status)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(text)).To(ContainSubstring("The mesh does not answer the manager"))
	})
}

var _ = Describe("A take-over from Open Data Hub", Serial, func() {
	It("rolls each guarded pod once, for a random key, and no other [M7] [O2] [O4] [O7]", func(ctx SpecContext) {
		manager.StopTemporarily(ctx)
		guards, open := []string{env.Namespace(ctx, "project", "modelmesh-enabled", "true"), env.Namespace(ctx, "project", "modelmesh-enabled", "true")}, env.Namespace(ctx, "project", "modelmesh-enabled", "true")
		models, before := map[string]*v1beta1.InferenceService{}, map[string]*appsv1.Deployment{}
		for _, ns := range append(guards, open) {
			createLegacyObjects(ctx, ns, ns != open)
			models[ns] = inference(ctx, ns, "digits")
			before[ns] = waitRevision(ctx, ns, "1")
		}
		start := env.AuditPosition()
		manager.Restart(ctx)
		keys := map[string]bool{}
		for _, ns := range guards {
			d := waitRevision(ctx, ns, "2")
			waitManaged(ctx, d, service(ns))
			env.WaitExists(ctx, namespaceObjects(ns)...)
			c := cookie(ns)
			env.Get(ctx, c)
			Expect(c.Data["cookie_secret"]).To(HaveLen(44))
			keys[string(c.Data["cookie_secret"])] = true
			proxy := framework.Container(d, "oauth-proxy")
			Expect(proxy).NotTo(BeNil())
			Expect(proxy.Args).NotTo(ContainElement(ContainSubstring("cookie-secret")))
			Expect(proxy.Env).To(ContainElement(HaveField("ValueFrom.SecretKeyRef.Name", c.Name)))
			r := runtimeNamed(ns, "triton-a")
			env.Get(ctx, r)
			env.WaitForEvent(ctx, r, runtimes.ReasonReplaced, "a public cookie key; the new key is in Secret "+c.Name)
			s := service(ns)
			env.Get(ctx, s)
			Expect(s.Annotations).To(HaveKeyWithValue("service.alpha.openshift.io/serving-cert-secret-name", "model-serving-proxy-tls"))
			Expect(s.Spec.Ports).To(ContainElement(HaveField("Name", "https")))
			Expect(firstWrite(start, ns, "secrets", c.Name).At).To(BeTemporally("<", firstWrite(start, ns, "deployments", d.Name).At), "the key comes first")
		}
		Expect(keys).To(HaveLen(len(guards)), "each namespace has its own key")
		kept := waitRevision(ctx, open, "1")
		waitManaged(ctx, kept)
		Expect(kept.Spec.Template).To(Equal(before[open].Spec.Template), "pods without a guard roll")
		Expect(kept.Annotations).To(HaveKey(runtimes.AnnotationLegacyTemplate))
		for ns, model := range models {
			waitMeshUnreachable(ctx, model)
			waitSettled(ctx, ns)
			expectNotForbidden(start, ns)
			expectNoRequestsFor(ns)
		}

		By("restarting the manager")
		start = env.AuditPosition()
		manager.Restart(ctx)
		for ns := range models {
			Eventually(func() framework.Entries { return requests(start, ns) }).WithContext(ctx).WithTimeout(waitTimeout).
				Should(ContainElement(And(HaveField("Resource", "services"), HaveField("Name", service(ns).Name))), "the namespace is reconciled")
			waitSettled(ctx, ns)
			Expect(requests(start, ns).Writes()).To(BeEmpty())
		}
		for _, ns := range guards {
			waitRevision(ctx, ns, "2")
		}
		waitRevision(ctx, open, "1")
	}, NodeTimeout(specTimeout))

	It("adopts the objects of the companion without recreating them", func(ctx SpecContext) {
		manager.StopTemporarily(ctx)
		ns := env.Namespace(ctx, "project", "modelmesh-enabled", "true")
		ovms(ctx, ns, modelmesh.AnnotationRoute, "true")
		connection(ctx, ns, "aws", "http://minio:9000")
		model := inference(ctx, ns, "digits", openshift.Finalizer)
		published, unpublished := route(ns, "digits"), route(ns, "letters")
		letters := inference(ctx, ns, "letters")
		for r, owner := range map[*unstructured.Unstructured]*v1beta1.InferenceService{published: model, unpublished: letters} {
			r.SetLabels(map[string]string{openshift.LabelInferenceService: owner.Name})
			r.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, v1beta1.GroupVersion.WithKind("InferenceService"))})
			Expect(unstructured.SetNestedField(r.Object, owner.Name+".apps.example.com", "spec", "host")).To(Succeed())
			Expect(unstructured.SetNestedField(r.Object, "Service", "spec", "to", "kind")).To(Succeed())
			Expect(unstructured.SetNestedField(r.Object, "modelmesh-serving", "spec", "to", "name")).To(Succeed())
		}
		account, binding, entries := serviceAccount(ns), delegator(ns), storage(ns)
		account.Labels = map[string]string{"app": "model-mesh"}
		binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:auth-delegator"}
		binding.Subjects = []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: ns, Name: "modelmesh-serving-sa"}}
		entries.Labels, entries.StringData = map[string]string{openshift.LabelManaged: "true"}, map[string]string{"old": "{}"}
		all := []client.Object{account, binding, entries, published, unpublished}
		createByLegacy(ctx, all...)
		made := map[client.Object]types.UID{}
		for _, o := range all {
			made[o] = o.GetUID()
		}
		By("unpublishing a model")
		env.Patch(ctx, letters, map[string]any{"spec": map[string]any{"predictor": map[string]any{"model": map[string]any{"runtime": "elsewhere"}}}})

		manager.Restart(ctx)
		env.WaitDeleted(ctx, unpublished)
		waitManaged(ctx, account, binding, entries, published)
		for _, o := range all[:4] {
			Expect(o.GetUID()).To(Equal(made[o]), "%T %s is a new one", o, o.GetName())
		}
		Expect(spec(published, "host")).To(Equal("digits.apps.example.com"))
		Expect(spec(published, "path")).To(Equal("/v2/models/digits"))
		env.WaitFor(ctx, entries, func(g Gomega) {
			g.Expect(entries.Data).To(HaveLen(1))
			g.Expect(entries.Data).To(HaveKey("aws"))
		})
		for _, s := range []client.Object{model, letters} {
			Expect(env.Admin.Delete(ctx, s)).To(Succeed())
		}
		env.WaitDeleted(ctx, model, letters, published, account, binding, entries)
	}, NodeTimeout(specTimeout))
})
