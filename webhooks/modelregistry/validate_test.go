package modelregistry

import (
	"strings"
	"testing"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
)

// external is a spec with an existing database.
const external = "{rest: {}, postgres: {host: db, username: u, database: d}}"

func TestNamespaceErrors(t *testing.T) {
	for _, test := range []struct{ setting, want string }{
		{"", ""},   // [modelregistry-1] [modelregistry-17]
		{"ns", ""}, // [modelregistry-2]
		{"other", "metadata.namespace: Invalid value: \"ns\": namespace must be other"}, // [modelregistry-2]
	} {
		requireError(t, Validate(registry(t, external), Settings{Namespace: test.setting}), test.want)
	}
	errs := Validate(registry(t, external), Settings{Namespace: "other"})
	requireError(t, errs, "REGISTRIES_NAMESPACE") // the error names the setting
}

func TestValidateDatabase(t *testing.T) {
	for spec, want := range map[string]string{
		"{rest: {}, mysql: {}}":                                                   "",                                                                                                   // [modelregistry-3]
		"{rest: {}, postgres: {}}":                                                "",                                                                                                   // [modelregistry-3]
		"{rest: {}, postgres: {generateDeployment: true}}":                        "",                                                                                                   // [modelregistry-4]
		"{rest: {}, postgres: {generateDeployment: true, host: h}}":               "spec.postgres.host: Invalid value: \"h\": host should not be set when auto-provisioning is enabled", // [modelregistry-4]
		"{rest: {}, postgres: {generateDeployment: true, hostAddress: 10.0.0.1}}": "spec.postgres.host: Invalid value: \"10.0.0.1\": host should not be set when auto-provisioning is enabled",
		"{rest: {}, postgres: {generateDeployment: false, host: h}}":              "",
		"{rest: {}}": "spec.postgres: Required value: required one of `postgres` or `mysql` database", // [modelregistry-5]
		"{rest: {}, postgres: {host: h, retentionPolicy: Sometimes}}":                    "spec.postgres.retentionPolicy: Unsupported value: \"Sometimes\": supported values: \"Retain\", \"Delete\"",
		"{rest: {}, postgres: {host: h, retentionPolicy: Delete, storage: {size: 1Gi}}}": "",
		"{rest: {}, postgres: {host: h, storage: {size: '0'}}}":                          "spec.postgres.storage.size: Invalid value: \"0\": size must be greater than zero",
	} {
		requireError(t, Validate(registry(t, spec), Settings{}), want)
	}
	errs := Validate(registry(t, "{rest: {}}"), Settings{})
	if len(errs) != 2 || errs[1].Field != "spec.mysql" {
		t.Errorf("got %v, want one error for spec.postgres and one for spec.mysql", errs)
	}
}

// Names that would fail later are rejected on create, D32, and long ones when a generated database is added.
func TestNamesAreValidated(t *testing.T) {
	long := func(n int) string { return strings.Repeat("a", n) }
	for _, test := range []struct{ name, spec, want string }{
		{"demo-1", external, ""},
		{"1demo", external, "metadata.name: Invalid value: \"1demo\": the Service of the registry has the same name: a DNS-1035 label must"},
		{"a.b", external, "the Service of the registry has the same name"},
		{"-a", external, "the Service of the registry has the same name"},
		{long(58), external, ""},
		{long(59), external, "must be at most 58 characters, because the host of its Route begins with the name and -rest; this one has 59"},
		{long(54), "{rest: {}, postgres: {generateDeployment: true}}", ""},
		{long(55), "{rest: {}, postgres: {generateDeployment: true}}", "must be at most 54 characters, because the Service of its database has the same name with the suffix -postgres; this one has 55"},
	} {
		m := registry(t, test.spec)
		m.Name = test.name
		requireError(t, nameErrors(m, nil), test.want)
		requireError(t, nameErrors(m, m.DeepCopy()), "")
	}
	updated := registry(t, "{rest: {}, postgres: {generateDeployment: true}}")
	old := registry(t, external)
	updated.Name, old.Name = long(55), long(55)
	requireError(t, nameErrors(updated, old), "-postgres; this one has 55")
}

func TestNamesAreUnique(t *testing.T) { // [modelregistry-13]
	m := registry(t, external)
	requireError(t, duplicateNameErrors(m, nil), "")
	requireError(t, duplicateNameErrors(m, []string{"ns"}), "")
	requireError(t, duplicateNameErrors(m, []string{"ns", "elsewhere"}), "metadata.name: Duplicate value: \"demo\": registry named demo already exists in namespace elsewhere")
}

// [D31] Values that would change the structure of arguments or manifests are rejected, unless they are already stored.
func TestValuesThatInjectConfigurationAreRejected(t *testing.T) {
	for spec, want := range map[string]string{
		external: "",
		"{rest: {image: 'registry.example.com:5000/a/b:v1'}, postgres: {host: 'db.data.svc.cluster.local.', username: 'me@server', database: model-registry}}": "",
		"{rest: {}, postgres: {host: '10.0.0.1', username: u, database: d, image: 'example.com/p@sha256:aa'}}":                                                 "",
		"{rest: {}, postgres: {host: 'fd00::1', hostAddress: '[fd00::1]'}}":                                                                                    "",
		"{rest: {}, postgres: {host: '[fd00::1'}}":                                                                                                             "spec.postgres.host: Invalid value",
		"{rest: {}, postgres: {host: ']fd00::1['}}":                                                                                                            "spec.postgres.host: Invalid value",
		"{rest: {}, postgres: {host: '[10.0.0.1]'}}":                                                                                                           "spec.postgres.host: Invalid value",
		"{rest: {}, postgres: {hostAddress: 'fe80::1%eth0'}}":                                                                                                  "spec.postgres.hostAddress: Invalid value",
		"{rest: {}, mysql: {host: db_1, username: root, database: model_registry}}":                                                                            "",
		"{rest: {}, postgres: {host: 'db:5432'}}":                                                                                                              "spec.postgres.host: Invalid value: \"db:5432\": must be a host name or an IP address",
		"{rest: {}, postgres: {host: 'db/x?sslmode=disable'}}":                                                                                                 "spec.postgres.host: Invalid value",
		"{rest: {}, postgres: {hostAddress: '$(HOSTNAME)'}}":                                                                                                   "spec.postgres.hostAddress: Invalid value",
		"{rest: {}, postgres: {host: h, username: \"u\\n- name: x\"}}":                                                                                         "spec.postgres.username: Invalid value",
		"{rest: {}, postgres: {host: h, username: u, database: 'd?sslmode=disable'}}":                                                                          "spec.postgres.database: Invalid value",
		"{rest: {}, postgres: {host: h, image: 'a b'}}":                                                                                                        "spec.postgres.image: Invalid value",
		"{rest: {}, mysql: {host: 'h)/x', username: u, database: d}}":                                                                                          "spec.mysql.host: Invalid value",
		"{rest: {}, mysql: {host: h, username: 'u:p', database: d}}":                                                                                           "spec.mysql.username: Invalid value",
		"{rest: {}, mysql: {host: h, username: u, database: 'd?x'}}":                                                                                           "spec.mysql.database: Invalid value",
		"{rest: {image: \"a\\nb\"}, mysql: {host: h}}":                                                                                                         "spec.rest.image: Invalid value",
		"{rest: {}, mysql: {host: h}, kubeRBACProxy: {image: '{x: y}'}}":                                                                                       "spec.kubeRBACProxy.image: Invalid value",
		"{rest: {}, mysql: {host: h}, oauthProxy: {image: '{x: y}'}}":                                                                                          "spec.oauthProxy.image: Invalid value",
		"{rest: {}, postgres: {host: " + strings.Repeat("h", 254) + "}}":                                                                                       "spec.postgres.host: Invalid value",
		"{rest: {}, postgres: {host: h, username: " + strings.Repeat("u", 129) + "}}":                                                                          "spec.postgres.username: Invalid value",
		"{rest: {}, postgres: {host: h, database: " + strings.Repeat("d", 65) + "}}":                                                                           "spec.postgres.database: Invalid value",
	} {
		m := registry(t, spec)
		requireError(t, patternErrors(m, nil), want)
		requireError(t, patternErrors(m, m.DeepCopy()), "")
		if want != "" {
			requireError(t, patternErrors(m, registry(t, external)), want)
		}
	}
}

// [D13] [D20] Each field and each change without effect causes one warning.
func TestWarnings(t *testing.T) {
	for spec, want := range map[string]string{
		external: "",
		"{rest: {}, grpc: {port: 9090}, postgres: {generateDeployment: true, image: i, storage: {size: 1Gi}, retentionPolicy: Delete, skipDBCreation: false}}": "",
		"{rest: {}, grpc: {port: 9091}, postgres: {host: h}}":                                              "spec.grpc.port: has no effect",
		"{rest: {}, grpc: {image: i}, postgres: {host: h}}":                                                "spec.grpc.image: has no effect",
		"{rest: {}, grpc: {resources: {}}, postgres: {host: h}}":                                           "spec.grpc.resources: has no effect",
		"{rest: {}, enable_database_upgrade: false, postgres: {host: h}}":                                  "spec.enable_database_upgrade: has no effect",
		"{rest: {}, downgrade_db_schema_version: 1, postgres: {host: h}}":                                  "spec.downgrade_db_schema_version: has no effect",
		"{rest: {resources: {claims: [{name: c}]}}, postgres: {host: h}}":                                  "spec.rest.resources.claims: has no effect",
		"{rest: {}, postgres: {host: h}, mysql: {host: h}}":                                                "spec.mysql: has no effect together with spec.postgres",
		"{rest: {}, postgres: {host: h, skipDBCreation: true}}":                                            "spec.postgres.skipDBCreation: has no effect",
		"{rest: {}, mysql: {host: h, skipDBCreation: true}}":                                               "spec.mysql.skipDBCreation: has no effect",
		"{rest: {}, postgres: {host: h, sslPasswordSecret: {name: s, key: k}}}":                            "spec.postgres.sslPasswordSecret: has no effect",
		"{rest: {}, postgres: {host: h, hostAddress: 10.0.0.1}}":                                           "spec.postgres.hostAddress: has no effect together with spec.postgres.host",
		"{rest: {}, postgres: {generateDeployment: true, passwordSecret: {name: s, key: k}}}":              "spec.postgres.passwordSecret: has no effect on a generated database",
		"{rest: {}, postgres: {generateDeployment: true, port: 5432, sslMode: disable}}":                   "",
		"{rest: {}, postgres: {generateDeployment: true, port: 5433}}":                                     "spec.postgres.port: has no effect on a generated database",
		"{rest: {}, postgres: {generateDeployment: true, sslMode: require}}":                               "spec.postgres.sslMode: has no effect on a generated database",
		"{rest: {}, postgres: {generateDeployment: true, sslCertificateSecret: {name: s, key: k}}}":        "spec.postgres.sslCertificateSecret: has no effect on a generated database",
		"{rest: {}, postgres: {generateDeployment: true, sslKeySecret: {name: s, key: k}}}":                "spec.postgres.sslKeySecret: has no effect on a generated database",
		"{rest: {}, postgres: {generateDeployment: true, sslRootCertificateSecret: {name: s, key: k}}}":    "spec.postgres.sslRootCertificateSecret: has no effect on a generated database",
		"{rest: {}, postgres: {generateDeployment: true, sslRootCertificateConfigMap: {name: s, key: k}}}": "spec.postgres.sslRootCertificateConfigMap: has no effect on a generated database",
		"{rest: {}, postgres: {connectionSecretName: s, port: 5433}}":                                      "spec.postgres.port: has no effect together with spec.postgres.connectionSecretName",
		"{rest: {}, postgres: {connectionSecretName: s, port: 5432, sslMode: require}}":                    "",
		"{rest: {}, postgres: {host: h, port: 5433, sslMode: require, sslKeySecret: {name: s, key: k}}}":   "",
		"{rest: {}, postgres: {host: h, image: i}}":                                                        "spec.postgres.image: has no effect without a generated database",
		"{rest: {}, postgres: {host: h, storage: {}}}":                                                     "spec.postgres.storage: has no effect without a generated database",
		"{rest: {}, postgres: {host: h, retentionPolicy: Retain}}":                                         "spec.postgres.retentionPolicy: has no effect without a generated database",
		"{rest: {}, postgres: {host: h, backup: {schedule: '@daily'}}}":                                    "spec.postgres.backup: has no effect without a generated database",
		"{rest: {}, postgres: {host: h, resources: {}}}":                                                   "spec.postgres.resources: has no effect without a generated database",
		"{rest: {}, postgres: {host: h, serverTLS: Enabled}}":                                              "spec.postgres.serverTLS: has no effect without a generated database",
		"{rest: {}, postgres: {host: h, majorVersion: 16}}":                                                "spec.postgres.majorVersion: has no effect without a generated database",
		"{rest: {serviceRoute: enabled}, postgres: {host: h}}":                                             "",
		"{rest: {serviceRoute: enabled}, postgres: {host: h}, kubeRBACProxy: {}}":                          "spec.rest.serviceRoute: clients can reach the server only through its proxy",
	} {
		m := registry(t, spec)
		got := warnings(m, nil)
		if want == "" && len(got) > 0 || want != "" && (len(got) != 1 || !strings.HasPrefix(got[0], want)) {
			t.Errorf("%s: got warnings %q, want one with prefix %q, or none for an empty prefix", spec, got, want)
		}
		if got := warnings(m, m.DeepCopy()); len(got) > 0 {
			t.Errorf("%s: got warnings %q for an update without changes, want none", spec, got)
		}
	}
	for change, want := range map[string]string{
		"{rest: {}, postgres: {generateDeployment: true, username: other, database: d, storage: {size: 5Gi, storageClassName: fast}}}": "spec.postgres.username: ",
		"{rest: {}, postgres: {generateDeployment: true, username: u, database: other, storage: {size: 5Gi, storageClassName: fast}}}": "spec.postgres.database: ",
		"{rest: {}, postgres: {generateDeployment: true, username: u, database: d, storage: {size: 1Gi, storageClassName: fast}}}":     "spec.postgres.storage.size: ",
		"{rest: {}, postgres: {generateDeployment: true, username: u, database: d, storage: {size: 5Gi, storageClassName: slow}}}":     "spec.postgres.storage.storageClassName: ",
		"{rest: {}, postgres: {generateDeployment: true, username: u, database: d, storage: {size: 9Gi, storageClassName: fast}}}":     "",
		"{rest: {}, postgres: {host: h, username: other, database: d}}":                                                                "",
	} {
		old := registry(t, "{rest: {}, postgres: {generateDeployment: true, username: u, database: d, storage: {size: 5Gi, storageClassName: fast}}}")
		got := warnings(registry(t, change), old)
		if want == "" && len(got) > 0 || want != "" && (len(got) != 1 || !strings.HasPrefix(got[0], want)) {
			t.Errorf("%s: got warnings %q, want one with prefix %q, or none for an empty prefix", change, got, want)
		}
	}
	several := warnings(registry(t, "{rest: {}, grpc: {port: 1}, enable_database_upgrade: true, mysql: {host: h}}"), &v1beta1.ModelRegistry{})
	if len(several) != 2 || several[0] > several[1] {
		t.Errorf("got warnings %q, want two in sorted order", several)
	}
}

// An error names the field, the value and the fix.
func TestErrorsNameFieldAndFix(t *testing.T) {
	long := registry(t, "{rest: {}, postgres: {generateDeployment: true, host: 'a b', username: 'u v', database: 'd e', image: 'i j', retentionPolicy: x, storage: {size: '0'}}}")
	long.Name = strings.Repeat("a", 60) + ".b"
	invalid := registry(t, "{rest: {image: 'a b'}, mysql: {host: 'a b', username: 'u v', database: 'd e'}, kubeRBACProxy: {image: 'x y'}}")
	noDatabase := registry(t, "{rest: {}}")
	checked := 0
	for _, m := range []*v1beta1.ModelRegistry{long, invalid, noDatabase} {
		errs := append(Validate(m, Settings{Namespace: "other"}), nameErrors(m, nil)...)
		errs = append(errs, patternErrors(m, nil)...)
		errs = append(errs, duplicateNameErrors(m, []string{"elsewhere"})...)
		for _, err := range errs {
			checked++
			if err.Field == "" || err.Type != "FieldValueRequired" && err.BadValue == "" {
				t.Errorf("the error does not name the field and the value: %v", err)
			}
			hasFix := false
			for _, word := range []string{"must", "set ", "create it there", "choose", "remove it", "supported values", "consist"} {
				hasFix = hasFix || strings.Contains(err.ErrorBody(), word)
			}
			if !hasFix {
				t.Errorf("the error does not name a fix: %v", err)
			}
		}
	}
	if checked < 19 {
		t.Errorf("got only %d errors, want at least 19", checked)
	}
}

// The rules do not modify objects, because the controller calls Validate and Default with objects of its cache.
func TestRulesDoNotModifyObjects(t *testing.T) {
	for _, spec := range []string{external, "{rest: {}, oauthProxy: {}, postgres: {}}", "{rest: {image: '" + defaultImage + "'}, mysql: {host: h}, kubeRBACProxy: {}}"} {
		m := registry(t, spec)
		original := m.DeepCopy()
		_ = Validate(m, settings(true))
		_ = warnings(m, nil)
		_ = nameErrors(m, nil)
		_ = patternErrors(m, nil)
		if _, err := Default(m, settings(true)); err != nil {
			t.Error(err)
		}
		requireEqual(t, spec, original, m)
	}
}
