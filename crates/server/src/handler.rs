//! Passes the protocol's requests to the tools and resources.

use std::sync::Arc;

use rmcp::{
    RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, Implementation,
        ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
        ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, ServerCapabilities, ServerConfig, Tool,
    },
    service::RequestContext,
};

use crate::{
    failure::Failure,
    resources,
    running::{Call, Running},
    tools::{self, Offered, Shared},
};

const INSTRUCTIONS: &str = "Backtrail keeps checkpoints of this workspace, so that files can be restored, including \
files that a shell command deleted. Call checkpoint_save before risky changes. To go back: find the checkpoint with \
checkpoint_list or file_history, preview the restore with restore_plan, then pass its plan to restore_apply. To take \
back one prompt or one checkpoint and keep later work: revert_plan, then revert. undo takes a restore, revert or \
adoption back. No tool deletes a checkpoint.";

/// Serves one workspace to one or more clients.
#[derive(Clone)]
pub(crate) struct Handler {
    shared: Arc<Shared>,
    tools: Arc<Vec<Arc<Offered>>>,
    running: Running,
}

impl Handler {
    pub(crate) fn new(shared: Shared) -> Self {
        Self { shared: Arc::new(shared), tools: Arc::new(tools::all()), running: Running::new() }
    }

    /// Returns the running operations.
    pub(crate) fn running(&self) -> &Running {
        &self.running
    }

    fn find(&self, name: &str) -> Option<&Arc<Offered>> {
        self.tools.iter().find(|tool| tool.listed.name == name)
    }

    async fn run<T: Send + 'static>(
        &self,
        context: &RequestContext<RoleServer>,
        work: impl FnOnce(&Shared, &Call) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let shared = Arc::clone(&self.shared);
        self.running.run(context, move |call| work(&shared, call)).await
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().build();
        let program = Implementation::new("backtrail", env!("CARGO_PKG_VERSION")).with_title("Backtrail");
        ServerConfig::new(capabilities).with_server_info(program).with_instructions(INSTRUCTIONS)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.find(name).map(|tool| tool.listed.clone())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools.iter().map(|tool| tool.listed.clone()).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = self.find(&request.name).cloned() else {
            let names: Vec<&str> = self.tools.iter().map(|tool| &*tool.listed.name).collect();
            let message = format!("there is no such tool; the tools are {}", names.join(", "));
            return Err(ErrorData::invalid_params(message, None));
        };
        let arguments = request.arguments.unwrap_or_default();
        let outcome = self.run(&context, move |shared, call| tool.call(shared, call, arguments)).await;
        // A failure has no structured content, because clients validate that against the schema of the answer.
        let answer = match outcome {
            Ok(answer) => CallToolResult::structured(answer),
            Err(failure) => CallToolResult::error(vec![ContentBlock::text(failure.to_json().to_string())]),
        };
        Ok(answer.into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let listed = self.run(&context, resources::list).await.map_err(|failure| resources::error(&failure))?;
        Ok(ListResourcesResult::with_all_items(listed))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let read = self.run(&context, move |shared, call| resources::read(shared, call, &request.uri)).await;
        let contents = read.map_err(|failure| resources::error(&failure))?;
        Ok(ReadResourceResult::new(vec![contents]).into())
    }
}
