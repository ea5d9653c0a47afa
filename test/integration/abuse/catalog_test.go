package abuse_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	catalogEditor        = "editor-of-catalogs"
	clusterRuntimeEditor = "editor-of-clusterservingruntimes"
)

func catalog(name, spec string) string {
	return "apiVersion: aihub.opendatahub.io/v1alpha1\nkind: Catalog\nmetadata: {name: " + name + "}\nspec:\n" + mergeSpec("{}", spec)
}

// clusterRuntime returns a ClusterServingRuntime.
func clusterRuntime(name, spec string) *unstructured.Unstructured {
	GinkgoHelper()
	o := object("", runtime(name, spec))
	o.SetKind("ClusterServingRuntime")
	return o
}

var _ = Describe("An editor of Catalogs without other permissions", func() {
	external := func(secret string) string { return "{database: {external: {host: db, secretName: " + secret + "}}}" }
	for title, attempt := range map[string]struct{ namespace, name, spec, message string }{
		"another name":                                      {"", "mine", "{}", "catalog resource name must be 'catalog'"},
		"the name of the catalog server":                    {"", "model-catalog", "{}", "catalog resource name must be 'catalog'"},
		"a database password of another user":               {"", "catalog", external("other-credentials"), "get secrets other-credentials"},
		"the etcd Secret as the database password":          {"", "catalog", external("model-serving-etcd"), "get secrets model-serving-etcd"},
		"a Secret of another user as the proxy certificate": {"", "catalog", "{proxy: {certificateSecretName: other-credentials}}", "get secrets other-credentials"},
		"the CA key as the database password":               {operatorNamespace, "catalog", external(webhookSecret), "it belongs to the manager"},
		"the CA key as the proxy certificate":               {operatorNamespace, "catalog", "{proxy: {certificateSecretName: " + webhookSecret + "}}", "it belongs to the manager"},
		"a token Secret of the manager":                     {operatorNamespace, "catalog", external(managerAccount + "-token-x"), "it belongs to the manager"},
		"an invalid sslMode":                                {"", "catalog", "{database: {external: {host: db, secretName: s, sslMode: off}}}", "sslMode"},
		"port 0":                                            {"", "catalog", "{database: {external: {host: db, secretName: s, port: 0}}}", "port"},
		"a host name of 254 characters":                     {"", "catalog", "{database: {external: {host: " + longText(254) + ", secretName: s}}}", "Too long"},
		"a negative volume size":                            {"", "catalog", "{database: {volume: {sizeLimit: '-1'}}}", "sizeLimit must be greater than zero"},
		"an invalid proxy mode":                             {"", "catalog", "{proxy: {mode: Sometimes}}", "Unsupported value"},
		"a hostPath volume":                                 {"", "catalog", "{volumes: [{name: v, hostPath: {path: /}}]}", "exactly one of configMap"},
		"a system priority class":                           {"", "catalog", "{priorityClassName: system-node-critical}", "create pods"},
		"an invalid access mode":                            {"", "catalog", "{access: {authenticated: Noone}}", "Unsupported value"},
	} {
		It("is denied "+title, func(ctx SpecContext) {
			namespace := attempt.namespace
			if namespace == "" {
				namespace = team
			}
			expectRejected(catalogEditor, namespace, catalog(attempt.name, attempt.spec), attempt.message)(ctx)
		}, NodeTimeout(specTimeout))
	}

	It("can create one Catalog, and cannot set pod fields nor redirect the password of another user to another host", func(ctx SpecContext) {
		c := object(team, catalog("catalog", "{image: quay.io/evil/image, serviceAccountName: pipeline, hostNetwork: true, nodeName: n, "+
			"resources: {catalog: {claims: [{name: others}]}}}"))
		Expect(unstructured.SetNestedField(c.Object, int64(7), "status", "observedGeneration")).To(Succeed())
		Expect(as(catalogEditor).Create(ctx, c)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, c))).To(Succeed())
			env.WaitDeleted(ctx, c)
		}, NodeTimeout(specTimeout))
		Expect(c.Object).NotTo(HaveKey("status"))
		Expect(c.Object["spec"]).To(HaveLen(2), "the spec must have only resources and the default of replicas")
		server := &appsv1.Deployment{}
		Eventually(func() error {
			return env.Admin.Get(ctx, client.ObjectKey{Namespace: team, Name: "model-catalog"}, server)
		}).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(poll).Should(Succeed())
		pod := server.Spec.Template.Spec
		Expect(pod.ServiceAccountName).To(Equal("model-catalog"))
		Expect(pod.HostNetwork).To(BeFalse())
		for _, container := range pod.Containers {
			Expect(container.Resources.Claims).To(BeEmpty())
			Expect(container.Image).NotTo(ContainSubstring("evil"))
		}
		By("rejecting a second Catalog in another namespace, because it would share the host and permissions of the first")
		expectRejected(catalogEditor, operatorNamespace, catalog("catalog", "{}"), "a cluster has only one Catalog")(ctx)
		By("setting the host of the database as a developer: only this host may receive the password")
		Expect(as(developer).Patch(ctx, c, merge(`{"spec":{"database":{"external":{"host":"db","secretName":"other-credentials"}}}}`))).To(Succeed())
		for _, change := range []string{`"host":"evil.example.com"`, `"host":"169.254.169.254"`, `"host":"kubernetes.default.svc"`, `"port":1234`} {
			err := as(catalogEditor).Patch(ctx, c.DeepCopy(), merge(`{"spec":{"database":{"external":{`+change+`}}}}`))
			Expect(err).To(MatchError(ContainSubstring(`spec.database.external.host: Forbidden: user "`+catalogEditor+`" cannot let pods use another server for Secret "other-credentials"`)), change)
		}
		Expect(as(catalogEditor).Patch(ctx, c, merge(`{"spec":{"database":{"external":{"sslMode":"verify-full"}}}}`))).To(Succeed())
	}, NodeTimeout(specTimeout))
})

var _ = Describe("An editor of ClusterServingRuntimes", func() {
	container := func(fields string) string { return "{containers: [{name: server, image: i, " + fields + "}]}" }
	for title, attempt := range map[string]struct{ user, spec, message string }{
		"an image": {clusterRuntimeEditor, "{}", "create pods in all namespaces"},
		"an image with permissions in one namespace": {developer, "{}", "create pods in all namespaces"},
		"another command":                                                 {clusterRuntimeEditor, container("command: [sh]"), `container "server"`},
		"a Secret in a volume":                                            {clusterRuntimeEditor, "{volumes: [{name: v, secret: {secretName: other-credentials}}]}", "get secrets other-credentials in all namespaces"},
		"a Secret with permissions in one namespace":                      {developer, "{volumes: [{name: v, secret: {secretName: other-credentials}}]}", "get secrets other-credentials in all namespaces"},
		"an image pull Secret":                                            {clusterRuntimeEditor, "{imagePullSecrets: [{name: other-credentials}]}", "get secrets other-credentials"},
		"the etcd Secret in an environment variable":                      {clusterRuntimeEditor, container("env: [{name: A, valueFrom: {secretKeyRef: {name: model-serving-etcd, key: k}}}]"), "get secrets model-serving-etcd"},
		"a ConfigMap":                                                     {clusterRuntimeEditor, container("envFrom: [{configMapRef: {name: others}}]"), "get configmaps others"},
		"a ServiceAccount token":                                          {clusterRuntimeEditor, "{volumes: [{name: v, projected: {sources: [{serviceAccountToken: {path: token, audience: vault}}]}}]}", "token of a ServiceAccount"},
		"a PersistentVolumeClaim":                                         {clusterRuntimeEditor, "{volumes: [{name: v, persistentVolumeClaim: {claimName: others}}]}", `volume "v"`},
		"labels that select other pods":                                   {clusterRuntimeEditor, "{labels: {app: mlflow}}", `label of pods "app"`},
		"the CA key in a volume, even as an administrator":                {admin, "{volumes: [{name: v, secret: {secretName: " + webhookSecret + "}}]}", "it belongs to the manager"},
		"the CA key in an environment variable, even as an administrator": {admin, container("env: [{name: A, valueFrom: {secretKeyRef: {name: " + webhookSecret + ", key: ca.key}}}]"), "it belongs to the manager"},
		"the pod label of the manager":                                    {admin, "{labels: {platform.opendatahub.io/manager: odh-platform-operator}}", "the platform selects pods by it"},
		"the pod label of ModelMesh":                                      {admin, "{labels: {modelmesh-service: modelmesh-serving}}", "the platform selects pods by it"},
		"a hostPath volume":                                               {admin, "{volumes: [{name: v, hostPath: {path: /}}]}", "Pod Security level baseline"},
		"a host port":                                                     {admin, container("ports: [{containerPort: 9000, hostPort: 80}]"), "Pod Security level baseline"},
		"a privileged container":                                          {admin, container("securityContext: {privileged: true}"), "Pod Security level baseline"},
	} {
		It("is denied "+title, func(ctx SpecContext) {
			err := as(attempt.user).Create(ctx, clusterRuntime("attempt", attempt.spec), client.DryRunAll)
			Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
			Expect(err).To(MatchError(ContainSubstring(attempt.message)))
		}, NodeTimeout(specTimeout))
	}

	It("cannot turn a KServe runtime into a ModelMesh runtime", func(ctx SpecContext) {
		r := clusterRuntime("single", "{multiModel: false, volumes: [{name: v, secret: {secretName: other-credentials}}]}")
		Expect(as(clusterRuntimeEditor).Create(ctx, r)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, r))).To(Succeed()) }, NodeTimeout(specTimeout))
		Expect(as(clusterRuntimeEditor).Patch(ctx, r, merge(`{"spec":{"multiModel":true}}`))).To(MatchError(ContainSubstring("get secrets other-credentials in all namespaces")))
	}, NodeTimeout(specTimeout))
})
