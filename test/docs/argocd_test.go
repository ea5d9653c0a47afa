package docs

import (
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"
	"sigs.k8s.io/yaml"
)

// healthScript returns the Argo CD health check in docs/gitops.md.
func healthScript(t *testing.T) string {
	t.Helper()
	for _, block := range strings.Split(read(t, "docs/gitops.md"), "```") {
		text, isYAML := strings.CutPrefix(block, "yaml\n")
		if !isYAML || !strings.HasPrefix(text, "resource.customizations.health.") {
			continue
		}
		var entries map[string]string
		if err := yaml.UnmarshalStrict([]byte(text), &entries); err != nil || len(entries) != 1 {
			t.Fatalf("got %d health checks, error %v, want 1", len(entries), err)
		}
		for _, script := range entries {
			return script
		}
	}
	t.Fatal("docs/gitops.md has no health check")
	return ""
}

// luaValue converts a decoded YAML value to Lua.
func luaValue(value any) lua.LValue {
	switch v := value.(type) {
	case map[string]any:
		table := &lua.LTable{}
		for key, entry := range v {
			table.RawSetString(key, luaValue(entry))
		}
		return table
	case []any:
		table := &lua.LTable{}
		for _, entry := range v {
			table.Append(luaValue(entry))
		}
		return table
	case string:
		return lua.LString(v)
	case bool:
		return lua.LBool(v)
	case float64:
		return lua.LNumber(v)
	}
	return lua.LNil
}

// [C-10] Argo CD starts the next sync wave when the script returns Healthy, so the script ignores conditions of an older generation.
func TestArgoCDHealthCheck(t *testing.T) {
	script := healthScript(t)
	for name, c := range map[string]struct{ object, status, message string }{
		"no status":                  {"{kind: ModelRegistry, metadata: {generation: 1}}", "Progressing", "no condition Ready of this generation yet"},
		"ready":                      {"{kind: ModelRegistry, metadata: {generation: 2}, status: {conditions: [{type: Ready, status: 'True', observedGeneration: 2, message: m}]}}", "Healthy", "m"},
		"ready before a change":      {"{kind: ModelRegistry, metadata: {generation: 3}, status: {conditions: [{type: Ready, status: 'True', observedGeneration: 2, message: m}]}}", "Progressing", "no condition Ready of this generation yet"},
		"not ready":                  {"{kind: MLflow, metadata: {generation: 2}, status: {conditions: [{type: Ready, status: 'False', observedGeneration: 2, message: m}]}}", "Progressing", "m"},
		"stalled":                    {"{kind: Catalog, metadata: {generation: 2}, status: {conditions: [{type: Ready, status: 'False', observedGeneration: 2, message: m}, {type: Stalled, status: 'True', observedGeneration: 2, message: s}]}}", "Degraded", "s"},
		"stalled before a change":    {"{kind: Catalog, metadata: {generation: 3}, status: {conditions: [{type: Stalled, status: 'True', observedGeneration: 2, message: s}]}}", "Progressing", "no condition Ready of this generation yet"},
		"no longer stalled":          {"{kind: Catalog, metadata: {generation: 2}, status: {conditions: [{type: Stalled, status: 'False', observedGeneration: 2, message: s}, {type: Ready, status: 'True', observedGeneration: 2, message: m}]}}", "Healthy", "m"},
		"no observedGeneration":      {"{kind: AppWrapper, metadata: {generation: 2}, spec: {suspend: false}, status: {conditions: [{type: Ready, status: 'True', message: m}]}}", "Healthy", "m"},
		"queued AppWrapper":          {"{kind: AppWrapper, metadata: {generation: 1}, spec: {suspend: true}}", "Suspended", "suspended, or waiting for quota"},
		"spec.suspend of other kind": {"{kind: Predictor, metadata: {generation: 1}, spec: {suspend: true}}", "Progressing", "no condition Ready of this generation yet"},
	} {
		t.Run(name, func(t *testing.T) {
			var object map[string]any
			if err := yaml.Unmarshal([]byte(c.object), &object); err != nil {
				t.Fatal(err)
			}
			state := lua.NewState()
			defer state.Close()
			state.SetGlobal("obj", luaValue(object))
			if err := state.DoString(script); err != nil {
				t.Fatal(err)
			}
			health, ok := state.Get(-1).(*lua.LTable)
			if !ok {
				t.Fatalf("got %s, want a table", state.Get(-1))
			}
			if status, message := health.RawGetString("status").String(), health.RawGetString("message").String(); status != c.status || message != c.message {
				t.Errorf("got status %s, message %q, want %s, %q", status, message, c.status, c.message)
			}
		})
	}
}
