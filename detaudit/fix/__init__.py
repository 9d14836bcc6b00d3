"""The job behind ``detaudit fix``: find what makes runs differ, try what may fix it in a copy, and prove the rest."""
