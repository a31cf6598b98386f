//! Finds every path that a source file names.

use std::collections::HashMap;

use syn::{
    Attribute, Expr, ExprMethodCall, File, Item, ItemUse, Macro, Path, Token, UseTree,
    parse::Parser,
    punctuated::Punctuated,
    visit::{self, Visit},
};

/// Returns every path that a source names, as an absolute path. A macro is `name!`, and a method call without arguments
/// is `.name()`. Tests are left out.
pub(crate) fn used_paths(file: &str, source: &str) -> Vec<String> {
    let parsed: File = syn::parse_str(source).unwrap_or_else(|error| panic!("{file}: {error}"));
    let mut found = Found { module: module_of(file), imports: HashMap::new(), used: Vec::new() };
    // Imports come first: they say what the short names in the rest of the file mean.
    ImportsOf(&mut found).visit_file(&parsed);
    found.visit_file(&parsed);
    found.used.sort();
    found.used.dedup();
    found.used
}

/// Returns the module of a file, as the names below `crate`.
fn module_of(file: &str) -> Vec<String> {
    let name = file.trim_end_matches(".rs").trim_end_matches("/mod");
    name.split('/').filter(|part| !["lib", "main"].contains(part)).map(str::to_owned).collect()
}

/// The paths found so far in one file.
struct Found {
    module: Vec<String>,
    /// The full path of each imported name.
    imports: HashMap<String, String>,
    used: Vec<String>,
}

impl Found {
    fn absolute(&self, parts: &[String]) -> String {
        let relative = parts.iter().take_while(|part| ["self", "super"].contains(&part.as_str())).count();
        if relative == 0 {
            return parts.join("::");
        }
        let ups = parts[..relative].iter().filter(|part| *part == "super").count();
        let base = &self.module[..self.module.len().saturating_sub(ups)];
        ["crate"]
            .into_iter()
            .chain(base.iter().chain(&parts[relative..]).map(String::as_str))
            .collect::<Vec<_>>()
            .join("::")
    }

    fn full_path(&self, path: &Path) -> String {
        let parts: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        match self.imports.get(&parts[0]) {
            Some(full) => [std::slice::from_ref(full), &parts[1..]].concat().join("::"),
            None => self.absolute(&parts),
        }
    }
}

impl<'ast> Visit<'ast> for Found {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_test(item) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, _: &'ast ItemUse) {}

    fn visit_path(&mut self, path: &'ast Path) {
        self.used.push(self.full_path(path));
        visit::visit_path(self, path);
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        if call.args.is_empty() {
            self.used.push(format!(".{}()", call.method));
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_macro(&mut self, called: &'ast Macro) {
        self.used.push(format!("{}!", self.full_path(&called.path)));
        let arguments = Punctuated::<Expr, Token![,]>::parse_terminated.parse2(called.tokens.clone());
        for argument in arguments.iter().flatten() {
            self.visit_expr(argument);
        }
    }
}

/// Collects the imports of a file.
struct ImportsOf<'a>(&'a mut Found);

impl<'ast> Visit<'ast> for ImportsOf<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_test(item) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.import(&item.tree, &mut Vec::new());
    }
}

impl ImportsOf<'_> {
    fn import(&mut self, tree: &UseTree, above: &mut Vec<String>) {
        match tree {
            UseTree::Path(path) => {
                above.push(path.ident.to_string());
                self.import(&path.tree, above);
                above.pop();
            }
            UseTree::Group(group) => group.items.iter().for_each(|item| self.import(item, above)),
            UseTree::Name(name) if name.ident == "self" => {
                let short = above.last().cloned().unwrap_or_default();
                self.add(above, short);
            }
            UseTree::Name(name) => self.add(&with(above, name.ident.to_string()), name.ident.to_string()),
            UseTree::Rename(renamed) => {
                let path = if renamed.ident == "self" { above.clone() } else { with(above, renamed.ident.to_string()) };
                self.add(&path, renamed.rename.to_string());
            }
            UseTree::Glob(_) => {
                let path = self.0.absolute(above);
                self.0.used.push(path);
            }
        }
    }

    fn add(&mut self, path: &[String], short: String) {
        let path = self.0.absolute(path);
        self.0.used.push(path.clone());
        self.0.imports.insert(short, path);
    }
}

fn with(above: &[String], name: String) -> Vec<String> {
    [above, &[name]].concat()
}

/// Returns whether an item is compiled for tests alone.
fn is_test(item: &Item) -> bool {
    let attributes: &[Attribute] = match item {
        Item::Const(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    };
    let is_cfg_test = |attribute: &Attribute| {
        attribute.path().is_ident("cfg") && attribute.parse_args::<Path>().is_ok_and(|path| path.is_ident("test"))
    };
    attributes.iter().any(is_cfg_test)
}
