//! The kinds, twice: in full, and with only the fields that are read.

use k8s_openapi::api::core::v1 as core;

use crate::probe::Sight;

impl Sight for core::Pod {
    const NAME: &'static str = "Pod";
    fn phase(&self) -> &str {
        self.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
    }
    fn conditions(&self) -> usize {
        let all = self.status.iter().flat_map(|status| status.conditions.iter().flatten());
        all.map(|each| each.type_.len() + each.status.len()).sum()
    }
}

pub mod full {
    use std::collections::BTreeMap;

    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
    use kube::CustomResource;
    use serde::{Deserialize, Serialize};

    use crate::probe::Sight;

    #[derive(CustomResource, Clone, Debug, Default, Deserialize, Serialize)]
    #[kube(group = "vteam.ambient-code", version = "v1alpha1", kind = "AgenticSession", plural = "agenticsessions")]
    #[kube(namespaced, status = "SessionStatus", schema = "disabled")]
    #[serde(rename_all = "camelCase", default)]
    pub struct SessionSpec {
        initial_prompt: String,
        display_name: String,
        project: String,
        interactive: bool,
        timeout: i64,
        inactivity_timeout: i64,
        llm_settings: Model,
        repos: Vec<Repository>,
        environment_variables: BTreeMap<String, String>,
        user_context: User,
        active_workflow: Workflow,
    }

    #[derive(Clone, Debug, Default, Deserialize, Serialize)]
    #[serde(rename_all = "camelCase", default)]
    pub struct SessionStatus {
        phase: String,
        observed_generation: i64,
        start_time: String,
        completion_time: String,
        last_activity_time: String,
        pod_name: String,
        sdk_session_id: String,
        sdk_restart_count: i64,
        reconciled_repos: Vec<Repository>,
        reconciled_workflow: Workflow,
        conditions: Vec<Condition>,
    }

    #[derive(Clone, Debug, Default, Deserialize, Serialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Repository {
        url: String,
        branch: String,
        name: String,
        status: Option<String>,
        cloned_at: Option<String>,
    }

    #[derive(Clone, Debug, Default, Deserialize, Serialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Model {
        model: String,
        temperature: f64,
        max_tokens: i64,
    }

    #[derive(Clone, Debug, Default, Deserialize, Serialize)]
    #[serde(rename_all = "camelCase", default)]
    struct User {
        user_id: String,
        display_name: String,
        groups: Vec<String>,
    }

    #[derive(Clone, Debug, Default, Deserialize, Serialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Workflow {
        git_url: String,
        branch: String,
        path: Option<String>,
        status: Option<String>,
        applied_at: Option<String>,
    }

    #[derive(CustomResource, Clone, Debug, Default, Deserialize, Serialize)]
    #[kube(group = "vteam.ambient-code", version = "v1alpha1", kind = "ProjectSettings", plural = "projectsettings")]
    #[kube(namespaced, status = "SettingsStatus", schema = "disabled")]
    #[serde(rename_all = "camelCase", default)]
    pub struct SettingsSpec {
        group_access: Vec<BTreeMap<String, String>>,
        runner_secrets_name: String,
        note: String,
    }

    #[derive(Clone, Debug, Default, Deserialize, Serialize)]
    #[serde(rename_all = "camelCase", default)]
    pub struct SettingsStatus {
        group_bindings_created: i64,
        observed_generation: i64,
    }

    impl Sight for AgenticSession {
        const NAME: &'static str = "AgenticSession";
        fn phase(&self) -> &str {
            self.status.as_ref().map_or("", |status| &status.phase)
        }
        fn conditions(&self) -> usize {
            let all = self.status.iter().flat_map(|status| &status.conditions);
            all.map(|each| each.type_.len() + each.status.len()).sum()
        }
        fn timeout(&self) -> i64 {
            self.spec.timeout
        }
        fn repositories(&self) -> usize {
            self.spec.repos.iter().map(|each| each.url.len()).sum()
        }
    }

    impl Sight for ProjectSettings {
        const NAME: &'static str = "ProjectSettings";
    }
}

pub mod slim {
    use k8s_openapi::api::core::v1 as core;
    use kube::api::ObjectMeta;
    use kube::{CustomResource, Resource};
    use serde::{Deserialize, Serialize};

    use crate::probe::Sight;

    #[derive(CustomResource, Clone, Debug, Default, Deserialize, Serialize)]
    #[kube(group = "vteam.ambient-code", version = "v1alpha1", kind = "AgenticSession", plural = "agenticsessions")]
    #[kube(namespaced, status = "Status", schema = "disabled")]
    #[serde(default)]
    pub struct SessionSpec {
        timeout: i64,
        repos: Vec<Repository>,
    }

    #[derive(Clone, Debug, Default, Deserialize, Serialize)]
    #[serde(default)]
    struct Repository {
        url: String,
    }

    #[derive(Clone, Debug, Default, Deserialize, Serialize)]
    #[serde(default)]
    pub struct Status {
        phase: String,
        conditions: Vec<Condition>,
    }

    #[derive(Clone, Debug, Default, Deserialize, Serialize)]
    #[serde(default)]
    struct Condition {
        #[serde(rename = "type")]
        kind: String,
        status: String,
    }

    #[derive(CustomResource, Clone, Debug, Default, Deserialize, Serialize)]
    #[kube(group = "vteam.ambient-code", version = "v1alpha1", kind = "ProjectSettings", plural = "projectsettings")]
    #[kube(namespaced, schema = "disabled")]
    pub struct SettingsSpec {}

    #[derive(Resource, Clone, Debug, Deserialize, Serialize)]
    #[resource(inherit = core::Pod)]
    pub struct Pod {
        metadata: ObjectMeta,
        status: Option<Status>,
    }

    impl Status {
        fn words(&self) -> usize {
            self.conditions.iter().map(|each| each.kind.len() + each.status.len()).sum()
        }
    }

    impl Sight for AgenticSession {
        const NAME: &'static str = "AgenticSession";
        fn phase(&self) -> &str {
            self.status.as_ref().map_or("", |status| &status.phase)
        }
        fn conditions(&self) -> usize {
            self.status.as_ref().map_or(0, Status::words)
        }
        fn timeout(&self) -> i64 {
            self.spec.timeout
        }
        fn repositories(&self) -> usize {
            self.spec.repos.iter().map(|each| each.url.len()).sum()
        }
    }

    impl Sight for ProjectSettings {
        const NAME: &'static str = "ProjectSettings";
    }

    impl Sight for Pod {
        const NAME: &'static str = "Pod";
        fn phase(&self) -> &str {
            self.status.as_ref().map_or("", |status| &status.phase)
        }
        fn conditions(&self) -> usize {
            self.status.as_ref().map_or(0, Status::words)
        }
    }
}
